//! Records with a fixed encoded size.

use crate::fingerprint::Fingerprint;

/// A record with a fixed encoded size, such as a number, a fingerprint, or a tuple of these.
pub trait FixedSize: Copy + Ord + Send {
    /// Encoded size in bytes.
    const BYTES: usize;
    /// Encodes the record in the first `BYTES` bytes of a slice, which must have at least as many.
    fn write(self, bytes: &mut [u8]);
    /// Decodes a record from the first `BYTES` bytes of a slice, which must have at least as many.
    fn read(bytes: &[u8]) -> Self;
}

impl<F: Fingerprint> FixedSize for F {
    const BYTES: usize = F::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        self.write_le(bytes);
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        F::read_le(bytes)
    }
}

macro_rules! fixed_numbers {
    ($($number:ty)*) => {$(
        impl FixedSize for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut number = [0; Self::BYTES];
                number.copy_from_slice(&bytes[..Self::BYTES]);
                Self::from_le_bytes(number)
            }
        }
    )*};
}

fixed_numbers!(u8 u32);

impl<A: FixedSize, B: FixedSize> FixedSize for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
        self.1.write(&mut bytes[A::BYTES..]);
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        (A::read(bytes), B::read(&bytes[A::BYTES..]))
    }
}

impl<A: FixedSize, B: FixedSize, C: FixedSize> FixedSize for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        (self.0, (self.1, self.2)).write(bytes);
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let (a, (b, c)) = FixedSize::read(bytes);
        (a, b, c)
    }
}

impl<R: FixedSize, const N: usize> FixedSize for [R; N] {
    const BYTES: usize = N * R::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        self.into_iter().zip(bytes.chunks_exact_mut(R::BYTES)).for_each(|(record, slot)| record.write(slot));
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let bytes = &bytes[..N * R::BYTES];
        std::array::from_fn(|at| R::read(&bytes[at * R::BYTES..]))
    }
}

/// Encoded as one byte that is 1 for `Some` and 0 for `None`, and then the record, or the default record for `None`.
impl<R: FixedSize + Default> FixedSize for Option<R> {
    const BYTES: usize = 1 + R::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        (u8::from(self.is_some()), self.unwrap_or_default()).write(bytes);
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let (is_some, record): (u8, R) = FixedSize::read(bytes);
        (is_some == 1).then_some(record)
    }
}
