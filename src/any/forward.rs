//! Macro that declares methods of stores, builders and snapshots of any width. Each method calls the method with
//! the same name on the value inside, which is for fingerprints of 64 or 128 bits.

/// Declares methods of an `AnyWidth`. Each method calls the method with the same name on the value inside. An
/// argument that is written as `?name` is a fingerprint: the declared method takes it as a `u128`, and fails if it
/// does not fit in the width. A function after `=>` converts the result.
macro_rules! forward {
    ($target:ident: $(pub fn $name:ident $arguments:tt -> $result:ty $(=> $convert:ident)?;)*) => {
        $(forward! { @$target::$name $arguments ($result) $($convert)? })*
    };
    (@$target:ident::$name:ident (&mut $($arguments:tt)*) $($result:tt)*) => {
        forward! { @$target::$name [&mut] $($arguments)*; $($result)* }
    };
    (@$target:ident::$name:ident (& $($arguments:tt)*) $($result:tt)*) => {
        forward! { @$target::$name [&] $($arguments)*; $($result)* }
    };
    (@$target:ident::$name:ident ($($arguments:tt)*) $($result:tt)*) => {
        forward! { @$target::$name [] $($arguments)*; $($result)* }
    };
    (
        @$target:ident::$name:ident [$($by:tt)*]
        $self:ident $(, ?$fingerprint:ident)? $(, $argument:ident: $type:ty)*; ($result:ty) $($convert:ident)?
    ) => {
        #[doc = concat!(
            "Forwards to [`", stringify!($target), "::", stringify!($name), "`]",
            $("; [`Error::BadArgument`](crate::Error::BadArgument) if the ", stringify!($fingerprint),
            " does not fit in the store's width",)? ".",
        )]
        #[allow(clippy::missing_errors_doc, reason = "the target documents them")]
        pub fn $name($($by)* $self $(, $fingerprint: u128)? $(, $argument: $type)*) -> $result {
            each_width!($self, one => $($convert)?(one.$name($(to_width($fingerprint)?,)? $($argument),*)))
        }
    };
}
pub(super) use forward;
