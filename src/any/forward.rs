//! Methods of any width that call the methods of each width.

/// Declares methods that call a method of the same name. A fingerprint after `?` must fit into the width. A function after `=>`
/// converts the result.
macro_rules! forward {
    ($of:ident: $(pub fn $name:ident $arguments:tt -> $result:ty $(=> $convert:ident)?;)*) => {
        $(forward! { @$of::$name $arguments ($result) $($convert)? })*
    };
    (@$of:ident::$name:ident (&mut $($arguments:tt)*) $($result:tt)*) => {
        forward! { @$of::$name [&mut] $($arguments)*; $($result)* }
    };
    (@$of:ident::$name:ident (& $($arguments:tt)*) $($result:tt)*) => {
        forward! { @$of::$name [&] $($arguments)*; $($result)* }
    };
    (@$of:ident::$name:ident ($($arguments:tt)*) $($result:tt)*) => {
        forward! { @$of::$name [] $($arguments)*; $($result)* }
    };
    (
        @$of:ident::$name:ident [$($by:tt)*]
        $self:ident $(, ?$fingerprint:ident)? $(, $argument:ident: $type:ty)*; ($result:ty) $($convert:ident)?
    ) => {
        #[doc = concat!(
            "As [`", stringify!($of), "::", stringify!($name), "`]",
            $("; [`Error::BadArgument`](crate::Error::BadArgument) if the ", stringify!($fingerprint),
            " does not fit",)? ".",
        )]
        #[allow(clippy::missing_errors_doc, reason = "as there")]
        pub fn $name($($by)* $self $(, $fingerprint: u128)? $(, $argument: $type)*) -> $result {
            each_width!($self, one => $($convert)?(one.$name($(fit($fingerprint)?,)? $($argument),*)))
        }
    };
}
pub(super) use forward;
