//! Records that take the same number of bytes each.

/// Bytes of the longest record: a row of sketches.
pub(super) const MAX_RECORD: usize = 96;

/// A record that takes the same number of bytes each time.
pub(crate) trait Fixed: Copy + Ord + Send {
    /// How many.
    const BYTES: usize;
    /// Writes it there.
    fn write(self, bytes: &mut [u8]);
    /// Reads it from there.
    fn read(bytes: &[u8]) -> Self;
}

/// Numbers are kept little-endian.
macro_rules! fixed_numbers {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            const BYTES: usize = size_of::<$number>();

            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Self {
                let mut number = [0; size_of::<$number>()];
                number.copy_from_slice(&bytes[..Self::BYTES]);
                Self::from_le_bytes(number)
            }
        }
    )*};
}

fixed_numbers!(u8, u32, u64, u128);

impl<A: Fixed, B: Fixed> Fixed for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
        self.1.write(&mut bytes[A::BYTES..]);
    }

    fn read(bytes: &[u8]) -> Self {
        (A::read(bytes), B::read(&bytes[A::BYTES..]))
    }
}

impl<A: Fixed, B: Fixed, C: Fixed> Fixed for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;

    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
        self.1.write(&mut bytes[A::BYTES..]);
        self.2.write(&mut bytes[A::BYTES + B::BYTES..]);
    }

    fn read(bytes: &[u8]) -> Self {
        (A::read(bytes), B::read(&bytes[A::BYTES..]), C::read(&bytes[A::BYTES + B::BYTES..]))
    }
}
