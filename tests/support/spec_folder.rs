//! The folder `format-spec/`: paths in it, and its Python programs.

use std::path::PathBuf;
use std::process::Command;

use crate::structure::root;

/// Returns a path in `format-spec/`.
pub(crate) fn spec(path: &str) -> PathBuf {
    root().join("format-spec").join(path)
}

/// Whether the tests write golden files anew, instead of comparing them.
pub(crate) fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Runs a Python program in `format-spec/`, and returns its output. If Python is missing, panics on CI, and returns `None` on
/// other machines.
pub(crate) fn python(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new("python3").arg("-B").arg(spec(program)).args(arguments).output() {
        Ok(output) => {
            let problem = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments:?}: {problem}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) if std::env::var_os("CI").is_some() => panic!("python3: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, {program} was not run: python3: {error}");
            None
        }
    }
}
