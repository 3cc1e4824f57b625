//! How a command ends when it does not end well.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use simstore::Error;

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// It could not be done: exit code 1.
    Failed(String),
    /// The library could not do it: exit code 1.
    Engine(Error),
    /// Whoever read our output has had enough: exit code 0, and no word.
    Closed,
}

impl Failure {
    /// The failure of a write to a file, or to standard output for `-`.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Failure {
        move |error| {
            if error.kind() == io::ErrorKind::BrokenPipe && path.as_os_str() == "-" {
                return Failure::Closed;
            }
            let path =
                if path.as_os_str() == "-" { "standard output".into() } else { path.to_string_lossy() };
            Failure::Failed(format!("{path}: cannot write: {error}"))
        }
    }

    /// The failure of a library call whose arguments are those of the command line.
    pub(crate) fn usage(error: Error) -> Failure {
        match error {
            Error::BadArgument(message) => Failure::Usage(with_flags(&message)),
            other => other.into(),
        }
    }

    /// Prints the message and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let (message, code) = match self {
            Failure::Closed => return ExitCode::SUCCESS,
            Failure::Usage(message) => (message.clone(), 2),
            Failure::Failed(message) => (message.clone(), 1),
            Failure::Engine(error) => (said_here(error), 1),
        };
        complain(&message);
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { path, action: "write", source } if path.as_os_str() == "-" => {
                Failure::write(&path)(source)
            }
            error => Failure::Engine(error),
        }
    }
}

/// An error of a library as the command line says it.
pub(crate) fn said_here(error: &Error) -> String {
    let message = with_flags(&error.to_string());
    match error {
        Error::Distance { asked, .. } => message.replace(
            "compact it with --distance",
            &format!("raise it with `simstore compact --distance {asked}`"),
        ),
        Error::AlreadyExists { .. } => message.replace("--replace replaces it", "use --force to replace it"),
        _ => message,
    }
}

/// A message of a library as the command line says it: what is ``option `text_field` `` there is `--text-field` here.
pub(crate) fn with_flags(message: &str) -> String {
    let mut pieces = message.split("option `");
    let mut said = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('`') {
            Some((name, rest)) if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                said.extend(["--", &name.replace('_', "-"), rest]);
            }
            _ => said.extend(["option `", piece]),
        }
    }
    said
}

/// Prints a message to standard error; a closed one is no reason to stop. What a file's name or a document would do to the
/// terminal is escaped.
pub(crate) fn complain(message: &str) {
    let is_escaped = |c: char| c.is_control() && c != '\n';
    let escape = |c: char| if is_escaped(c) { c.escape_default().to_string() } else { c.to_string() };
    let message: String = message.chars().map(escape).collect();
    let _ = writeln!(io::stderr().lock(), "simstore: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_flags() {
        for (message, said) in [
            ("no field `x`; option `text_a` names another", "no field `x`; --text-a names another"),
            ("option `a`option `b_c`", "--a--b-c"),
            ("option `", "option `"),
            ("the option `of 2`, option", "the option `of 2`, option"),
            ("", ""),
        ] {
            assert_eq!(with_flags(message), said);
        }
        let distance = Error::Distance { path: "store".into(), asked: 9, supported: 3 };
        assert!(said_here(&distance).ends_with("; raise it with `simstore compact --distance 9`"));
    }
}
