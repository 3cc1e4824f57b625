//! Records that take the same number of bytes each.

use crate::fingerprint::Fingerprint;

/// A record that takes the same number of bytes each time: a number, a fingerprint, some of them together.
pub trait Fixed: Copy + Ord + Send {
    /// How many.
    const BYTES: usize;
    /// Writes it to the first `BYTES` bytes of a slice, which has as many.
    fn write(self, bytes: &mut [u8]);
    /// Reads it from the first `BYTES` bytes of a slice, which has as many.
    fn read(bytes: &[u8]) -> Self;
}

impl<F: Fingerprint> Fixed for F {
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

impl Fixed for u8 {
    const BYTES: usize = 1;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes[0] = self;
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        bytes[0]
    }
}

impl Fixed for u32 {
    const BYTES: usize = 4;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

impl<A: Fixed, B: Fixed> Fixed for (A, B) {
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

impl<A: Fixed, B: Fixed, C: Fixed> Fixed for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        (self.0, (self.1, self.2)).write(bytes);
    }

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        let (a, (b, c)) = Fixed::read(bytes);
        (a, b, c)
    }
}
