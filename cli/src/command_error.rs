//! Errors of commands: their messages and exit codes.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use simstore::Error;

/// Result of a command, or of a step of a command.
pub(crate) type CommandResult<T = ()> = Result<T, CommandError>;

/// Reason why a command ended early.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Invalid arguments: exit code 2.
    Usage(String),
    /// Failure with a message that a command has composed itself: exit code 1.
    Failed(String),
    /// Error of a simstore library: exit code 1.
    Library(Error),
    /// The reader of standard output closed the pipe, as `head` does: exit code 0, no message.
    OutputClosed,
}

impl CommandError {
    /// Returns a function that converts an I/O error to a [`CommandError`], for writes to `path`; `-` is standard output.
    pub(crate) fn on_write(path: &Path) -> impl Fn(io::Error) -> CommandError {
        move |error| {
            if error.kind() == io::ErrorKind::BrokenPipe && path.as_os_str() == "-" {
                return CommandError::OutputClosed;
            }
            let path =
                if path.as_os_str() == "-" { "standard output".into() } else { path.to_string_lossy() };
            CommandError::Failed(format!("{path}: cannot write: {error}"))
        }
    }

    /// Converts an error of a library call whose arguments come from command-line options. If the library refused an argument,
    /// returns a usage error.
    pub(crate) fn usage(error: Error) -> CommandError {
        match error {
            Error::BadArgument(message) => CommandError::Usage(options_as_flags(&message)),
            other => other.into(),
        }
    }

    /// Prints the message of this error, if it has one, to standard error. Returns the exit code.
    pub(crate) fn print(&self) -> ExitCode {
        let (message, code) = match self {
            CommandError::OutputClosed => return ExitCode::SUCCESS,
            CommandError::Usage(message) => (message.clone(), 2),
            CommandError::Failed(message) => (message.clone(), 1),
            CommandError::Library(error) => (error_message(error), 1),
        };
        print_message(&message);
        ExitCode::from(code)
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { path, action: "write", source } if path.as_os_str() == "-" => {
                CommandError::on_write(&path)(source)
            }
            error => CommandError::Library(error),
        }
    }
}

/// Returns the message of a library error, with command-line flags such as `--text-field` in place of the library's names of
/// options.
pub(crate) fn error_message(error: &Error) -> String {
    let message = options_as_flags(&error.to_string());
    match error {
        Error::Distance { requested, .. } => message.replace(
            "compact it with --distance",
            &format!("raise it with `simstore compact --distance {requested}`"),
        ),
        Error::AlreadyExists { .. } => message.replace("--replace replaces it", "use --force to replace it"),
        _ => message,
    }
}

/// Replaces option names in a library message by flags: ``option `text_field` `` becomes `--text-field`.
pub(crate) fn options_as_flags(message: &str) -> String {
    let mut pieces = message.split("option `");
    let mut replaced = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('`') {
            Some((name, rest)) if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                replaced.extend(["--", &name.replace('_', "-"), rest]);
            }
            _ => replaced.extend(["option `", piece]),
        }
    }
    replaced
}

/// Prints a message to standard error; ignores write errors, because standard error may be closed. Escapes control characters other than
/// line breaks, so that file names and documents cannot send commands to the terminal.
pub(crate) fn print_message(message: &str) {
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
        for (message, expected) in [
            ("no field `x`; option `text_a` names another", "no field `x`; --text-a names another"),
            ("option `a`option `b_c`", "--a--b-c"),
            ("option `", "option `"),
            ("the option `of 2`, option", "the option `of 2`, option"),
            ("", ""),
        ] {
            assert_eq!(options_as_flags(message), expected);
        }
        let distance = Error::Distance { path: "store".into(), requested: 9, supported: 3 };
        assert!(error_message(&distance).ends_with("; raise it with `simstore compact --distance 9`"));
    }
}
