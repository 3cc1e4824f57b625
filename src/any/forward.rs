//! Methods of any width that do what those of each width do.

/// Calls a method of the same name.
macro_rules! forward {
    ($of:ident: $(pub fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(
            #[doc = concat!("As [`", stringify!($of), "::", stringify!($name), "`].")]
            #[allow(clippy::missing_errors_doc, reason = "as there")]
            pub fn $name(&self $(, $argument: $type)*) -> $result {
                each_width!(self, one => one.$name($($argument),*))
            }
        )*
    };
}
pub(super) use forward;
