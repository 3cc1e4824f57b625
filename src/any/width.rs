//! Values that depend on the width of fingerprints.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::stored_bits;

/// A value of type `A` for fingerprints of 64 bits, or of type `B` for fingerprints of 128 bits.
///
/// ```
/// use simstore::any::AnyWidth;
/// use simstore::join::Forest;
///
/// let mut forest = AnyWidth::with_bits(128, || Ok(Forest::<u64>::new()), || Ok(Forest::<u128>::new()))?;
/// simstore::each_width!(&mut forest, forest => forest.connect(1_u8.into(), 2_u8.into()));
/// assert_eq!(forest.bits(), 128);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyWidth<A, B> {
    /// The value for fingerprints of 64 bits.
    Bits64(A),
    /// The value for fingerprints of 128 bits.
    Bits128(B),
}

/// The width of fingerprints alone, without a value.
pub type Width = AnyWidth<(), ()>;

/// A list of fingerprints, either all of 64 bits or all of 128 bits.
pub type AnyFingerprints = AnyWidth<Vec<u64>, Vec<u128>>;

/// Evaluates an expression for the width of an [`AnyWidth`]. The expression uses the value inside, or the type of
/// the fingerprints.
///
/// In `each_width!(any, pattern => expression)`, the expression uses the value inside, bound to the pattern. In
/// `each_width!(any, type F => expression)`, the expression uses the type `F`, which is `u64` or `u128`. The
/// result must have the same type for both widths.
///
/// ```
/// use simstore::Fingerprint;
/// use simstore::any::{AnyFingerprints, Width};
/// use simstore::each_width;
///
/// let fingerprints = AnyFingerprints::from(vec![1_u64, 3]);
/// assert_eq!(each_width!(&fingerprints, values => values.len()), 2);
/// assert_eq!(each_width!(Width::from_bits(128)?, type F => F::MAX_DISTANCE), 32);
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
    /// Creates a value for fingerprints of `bits` bits: calls `narrow` if `bits` is 64, or `wide` if it is 128.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `bits` is neither 64 nor 128; any error of the called function.
    pub fn with_bits(
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

    /// Width of the fingerprints in bits: 64 or 128.
    pub fn bits(&self) -> u32 {
        match self {
            AnyWidth::Bits64(_) => u64::BITS,
            AnyWidth::Bits128(_) => u128::BITS,
        }
    }

    /// Returns the width of the fingerprints, without the value.
    pub fn width(&self) -> Width {
        self.as_ref().map(drop, drop)
    }

    /// Returns a shared reference to the value, with the same width.
    pub fn as_ref(&self) -> AnyWidth<&A, &B> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(one),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(one),
        }
    }

    /// Returns a mutable reference to the value, with the same width.
    pub fn as_mut(&mut self) -> AnyWidth<&mut A, &mut B> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(one),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(one),
        }
    }

    /// Converts the value by `narrow` if the fingerprints have 64 bits, or by `wide` if they have 128 bits. The
    /// width stays the same.
    pub fn map<C, D>(self, narrow: impl FnOnce(A) -> C, wide: impl FnOnce(B) -> D) -> AnyWidth<C, D> {
        match self {
            AnyWidth::Bits64(one) => AnyWidth::Bits64(narrow(one)),
            AnyWidth::Bits128(one) => AnyWidth::Bits128(wide(one)),
        }
    }

    /// Combines this value and another value for fingerprints of the same width into a pair of values.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the widths differ.
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
    /// Converts a number of bits, 64 or 128, to a [`Width`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `bits` is neither 64 nor 128.
    pub fn from_bits(bits: u32) -> Result<Width> {
        Width::with_bits(bits, || Ok(()), || Ok(()))
    }

    /// Reads the width of a store's fingerprints from the store's manifest.
    ///
    /// # Errors
    /// The errors of [`stored_bits`].
    pub fn from_store(path: &Path) -> Result<Width> {
        Width::from_bits(stored_bits(path)?)
    }
}

impl AnyFingerprints {
    /// Number of fingerprints in the list.
    pub fn len(&self) -> usize {
        each_width!(self, values => values.len())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the fingerprint at a position of the list, or `None` if the list is too short.
    pub fn get(&self, position: usize) -> Option<u128> {
        each_width!(self, values => values.get(position).map(|value| value.to_u128()))
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
