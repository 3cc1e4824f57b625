//! Help that lists commands in groups, shell completions, and man pages.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::command_error::{CommandError, CommandResult};
use crate::output;

/// Groups of commands, in the order of the help: (heading, names of the commands).
pub(crate) const COMMAND_GROUPS: [(&str, &[&str]); 5 + cfg!(feature = "serve") as usize] = [
    ("Deduplicate", &["dedup", "compare"]),
    (
        "Stores",
        &["build", "add", "query", "delete", "compact", "checkpoint", "inspect", "verify", "salvage", "dump"],
    ),
    #[cfg(feature = "serve")]
    ("Serve", &["serve"]),
    ("Fingerprints", &["fingerprint", "profiles", "idf"]),
    ("Measure", &["evaluate", "plan", "compression"]),
    ("Setup", &["completions", "man-pages", "help"]),
];

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  simstore completions bash > simstore.bash
  simstore completions zsh > _simstore")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Write a man page for each command
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  simstore man-pages man1")]
pub(crate) struct ManPagesArgs {
    /// Directory for the pages, which is created if it is missing
    directory: PathBuf,
}

/// Replaces the list of commands in the help by a list in groups.
pub(crate) fn with_command_groups(mut command: Command) -> Command {
    command.build();
    let mut listing = String::new();
    let width = command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    for (group, names) in COMMAND_GROUPS {
        let _ = writeln!(listing, "{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(listing, "  {name:width$}  {about}");
        }
        listing.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listing}{{options}}{{after-help}}"
    ))
}

/// Prints the completion script for a shell.
pub(crate) fn print_completions(args: &CompletionsArgs, mut command: Command) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "simstore", &mut script);
    let mut output = output::stdout();
    output.write_bytes(&script)?;
    Ok(output.finish()?)
}

/// Writes `simstore.1`, and a man page for each command.
pub(crate) fn write_man_pages(args: &ManPagesArgs, command: Command) -> CommandResult {
    let failed = |error: std::io::Error| {
        CommandError::Failed(format!("{}: cannot write man pages: {error}", args.directory.display()))
    };
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), &args.directory).map_err(failed)
}
