//! Recognizes files of source code by their names, and chooses the profile to compare texts.

use std::path::Path;

use simstore_text::Profile;

use crate::{Inputs, Notice, Watch};
use simstore_io::formats::detect;
use simstore_io::numbers::count_of;

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

/// Whether the name of a file is one of source code, below its compression.
fn is_code(path: &Path) -> bool {
    detect::extension(path).is_some_and(|extension| EXTENSIONS.binary_search(&&*extension).is_ok())
}

/// The default profile to compare texts: [`Profile::code`] if all inputs are files of source code by their names, else
/// [`Profile::shingles`]. If any file is source code, a notice reports the choice, and that `option` names another profile.
pub fn profile_of_texts(inputs: &Inputs, option: &str, watch: &dyn Watch) -> Profile {
    let files = inputs.files().filter_map(Result::ok).map(|file| file.path);
    profile_of_files(files, option, watch)
}

/// Like [`profile_of_texts`], for paths of files.
pub fn profile_of_files(
    files: impl Iterator<Item = impl AsRef<Path>>,
    option: &str,
    watch: &dyn Watch,
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
    let files = count_of(code, "file");
    if code < all {
        watch.notice(&Notice::Warning(&format!(
            "{files} of {all} are source code: all files are compared as texts, ignoring punctuation; option `{option}` code compares \
             all by identifiers, numbers and symbols"
        )));
        return shingles;
    }
    watch.notice(&Notice::Remark(&format!(
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
