//! Entry point of the program `simstore`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    simstore_cli::main()
}
