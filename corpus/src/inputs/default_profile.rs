//! Chooses the default profile for comparing texts: one for source code, which is recognized by file name, or one for
//! other texts.

use std::path::Path;

use simstore_text::Profile;

use crate::{Diagnostic, Inputs, Observer};
use simstore_io::formats::detect;
use simstore_io::numbers::format_count_of;

/// Extensions of files of source code. Formats for data or settings, such as JSON and YAML, are not included.
const EXTENSIONS: &[&str] = &[
    "adb", "ads", "asm", "bash", "bat", "c", "cc", "cjs", "cl", "clj", "cljs", "cmake", "coffee", "cpp",
    "cr", "cs", "css", "cu", "cuh", "cxx", "d", "dart", "el", "elm", "erl", "ex", "exs", "f", "f90", "f95",
    "fs", "fsx", "glsl", "go", "gradle", "groovy", "h", "hh", "hlsl", "hpp", "hrl", "hs", "hxx", "java",
    "jl", "js", "jsx", "kt", "kts", "less", "lisp", "lua", "m", "mjs", "ml", "mli", "mm", "nim", "pas",
    "php", "pl", "pm", "proto", "ps1", "py", "pyi", "pyx", "r", "rb", "rkt", "rs", "s", "sass", "scala",
    "scm", "scss", "sh", "sol", "sql", "sv", "svelte", "swift", "tcl", "ts", "tsx", "v", "vb", "vhd", "vhdl",
    "vim", "vue", "wgsl", "zig", "zsh",
];

/// Whether the extension of a file is one of source code. For a compressed file, looks at the extension before `.gz` or
/// the like.
fn is_code(path: &Path) -> bool {
    detect::extension(path).is_some_and(|extension| EXTENSIONS.binary_search(&&*extension).is_ok())
}

/// Returns the default profile for comparing texts: [`Profile::code`] if all input files have extensions of source code,
/// else [`Profile::shingles`]. If any file is source code, reports the choice in a diagnostic. `option` is the name of the
/// option that selects another profile; the diagnostic mentions it.
pub fn default_text_profile(inputs: &Inputs, option: &str, observer: &dyn Observer) -> Profile {
    let files = inputs.files().filter_map(Result::ok).map(|file| file.path);
    default_text_profile_for_files(files, option, observer)
}

/// Like [`default_text_profile`], for files given by their paths.
pub fn default_text_profile_for_files(
    files: impl Iterator<Item = impl AsRef<Path>>,
    option: &str,
    observer: &dyn Observer,
) -> Profile {
    let (mut code, mut all) = (0, 0);
    for file in files {
        all += 1;
        code += u64::from(is_code(file.as_ref()));
    }
    let (shingles, by_code) = (Profile::shingles(), Profile::code());
    if code == 0 {
        return shingles;
    }
    let files = format_count_of(code, "file");
    if code < all {
        observer.diagnostic(&Diagnostic::Warning(&format!(
            "{files} of {all} are source code: all files are compared as texts, ignoring punctuation; option `{option}` code compares \
             all by identifiers, numbers and symbols"
        )));
        return shingles;
    }
    observer.diagnostic(&Diagnostic::Info(&format!(
        "comparing {files} of source code by identifiers, numbers and symbols (profile {by_code}); option `{option}` {shingles} compares \
         them as texts"
    )));
    by_code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_source_code() {
        assert!(EXTENSIONS.is_sorted_by(|a, b| a < b));
        for (path, expected) in [
            ("src/a.rs", true),
            ("a.CPP", true),
            ("a.b.py.gz", true),
            ("a.rs.txt", false),
            ("rs", false),
            (".c", false),
            ("a.md", false),
            ("a.json", false),
            ("-", false),
            ("", false),
        ] {
            assert_eq!(is_code(Path::new(path)), expected, "{path}");
        }
    }
}
