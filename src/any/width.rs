//! One of the two widths, and what goes with it.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::stored_bits;

/// What goes with fingerprints of 64 bits, or what goes with those of 128.
///
/// ```
/// use simstore::any::AnyWidth;
/// use simstore::join::Forest;
///
/// let mut forest = AnyWidth::of_bits(128, || Ok(Forest::<u64>::new()), || Ok(Forest::<u128>::new()))?;
/// simstore::each_width!(&mut forest, forest => forest.connect(1_u8.into(), 2_u8.into()));
/// assert_eq!(forest.bits(), 128);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyWidth<A, B> {
    /// Of 64 bits.
    Bits64(A),
    /// Of 128 bits.
    Bits128(B),
}

/// A width, and nothing that goes with it.
pub type Width = AnyWidth<(), ()>;

/// Fingerprints of one width.
pub type AnyFingerprints = AnyWidth<Vec<u64>, Vec<u128>>;

/// Does the same with what an [`AnyWidth`](crate::any::AnyWidth) holds, or with fingerprints of its type.
///
/// ```
/// use simstore::Fingerprint;
/// use simstore::any::{AnyFingerprints, Width};
/// use simstore::each_width;
///
/// let fingerprints = AnyFingerprints::from(vec![1_u64, 3]);
/// assert_eq!(each_width!(&fingerprints, values => values.len()), 2);
/// assert_eq!(each_width!(Width::of(128)?, type F => F::MAX_DISTANCE), 32);
/// # Ok::<(), simstore::Error>(())
/// ```
#[macro_export]
macro_rules! each_width {
    ($any:expr, type $fingerprint:ident => $result:expr) => {
        match $any {
            $crate::any::AnyWidth::Bits64(_) => {
                type $fingerprint = u64;
                $result
            }
            $crate::any::AnyWidth::Bits128(_) => {
                type $fingerprint = u128;
                $result
            }
        }
    };
    ($any:expr, $one:pat => $result:expr) => {
        match $any {
            $crate::any::AnyWidth::Bits64($one) => $result,
            $crate::any::AnyWidth::Bits128($one) => $result,
        }
    };
}

impl<A, B> AnyWidth<A, B> {
    /// What one of the two makes, by the number of bits.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is no such width; what is returned.
    pub fn of_bits(
        bits: u32,
        narrow: impl FnOnce() -> Result<A>,
        wide: impl FnOnce() -> Result<B>,
    ) -> Result<Self> {
        match bits {
            u64::BITS => narrow().map(AnyWidth::Bits64),
            u128::BITS => wide().map(AnyWidth::Bits128),
            _ => Err(Error::BadArgument(format!("option `bits` is {bits}: expected 64 or 128"))),
        }
    }

    /// The width of the fingerprints, 64 or 128.
    pub fn bits(&self) -> u32 {
        match self {
            AnyWidth::Bits64(_) => u64::BITS,
            AnyWidth::Bits128(_) => u128::BITS,
        }
    }

    /// The width alone.
    pub fn width(&self) -> Width {
        self.as_ref().map(drop, drop)
    }

    /// The same by reference.
    pub fn as_ref(&self) -> AnyWidth<&A, &B> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(one),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(one),
        }
    }

    /// The same by a reference that can be written through.
    pub fn as_mut(&mut self) -> AnyWidth<&mut A, &mut B> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(one),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(one),
        }
    }

    /// Something else of the same width.
    pub fn map<C, D>(self, narrow: impl FnOnce(A) -> C, wide: impl FnOnce(B) -> D) -> AnyWidth<C, D> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(narrow(one)),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(wide(one)),
        }
    }

    /// This and another one of the same width.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the other one has another width.
    pub fn zip<C, D>(self, other: AnyWidth<C, D>) -> Result<AnyWidth<(A, C), (B, D)>> {
        match (self, other) {
            (AnyWidth::Bits64(one), AnyWidth::Bits64(other)) => Ok(AnyWidth::Bits64((one, other))),
            (AnyWidth::Bits128(one), AnyWidth::Bits128(other)) => Ok(AnyWidth::Bits128((one, other))),
            (one, other) => Err(Error::BadArgument(format!(
                "expected fingerprints of {} bits, found some of {}",
                one.bits(),
                other.bits()
            ))),
        }
    }
}

impl Width {
    /// The width of so many bits.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is none.
    pub fn of(bits: u32) -> Result<Width> {
        Width::of_bits(bits, || Ok(()), || Ok(()))
    }

    /// The width of the fingerprints of a store; reads the manifest alone.
    ///
    /// # Errors
    /// As [`stored_bits`].
    pub fn of_store(path: &Path) -> Result<Width> {
        Width::of(stored_bits(path)?)
    }
}

impl AnyFingerprints {
    /// How many there are.
    pub fn len(&self) -> usize {
        each_width!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them by its position; `None` if there are not so many.
    pub fn get(&self, at: usize) -> Option<u128> {
        each_width!(self, values => values.get(at).map(|value| value.to_u128()))
    }
}

impl From<Vec<u64>> for AnyFingerprints {
    fn from(values: Vec<u64>) -> AnyFingerprints {
        AnyWidth::Bits64(values)
    }
}

impl From<Vec<u128>> for AnyFingerprints {
    fn from(values: Vec<u128>) -> AnyFingerprints {
        AnyWidth::Bits128(values)
    }
}
