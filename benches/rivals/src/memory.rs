//! Memory of this process and of the machine. The functions return errors without Linux's `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// Returns the resident anonymous memory (`RssAnon`) of this process in bytes.
pub(crate) fn resident_bytes() -> Result<u64> {
    status("RssAnon:")
}

/// Returns the peak resident memory of this process in bytes, since its start or the last [`reset_peak`].
pub(crate) fn peak_bytes() -> Result<u64> {
    status("VmHWM:")
}

/// Resets the peak memory ([`peak_bytes`]) to the current resident memory.
pub(crate) fn reset_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of the memory")
}

/// Returns the available memory of the machine in bytes.
pub(crate) fn available_bytes() -> Result<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

fn status(name: &str) -> Result<u64> {
    field("/proc/self/status", name)
}

/// Finds the line `NAME NUMBER kB` of a file in `/proc`. Returns the number, converted to bytes.
fn field(path: &str, name: &str) -> Result<u64> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{path}: memory is measured on Linux only"))?;
    let line = text.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    Ok(number.with_context(|| format!("{path} has no {name}"))? * 1024)
}
