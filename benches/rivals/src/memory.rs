//! What a process takes, as Linux tells it; nothing elsewhere.

use std::fs;

use anyhow::{Context, Result};

/// Memory that is resident now and not a file's, in bytes.
pub(crate) fn resident_bytes() -> Result<u64> {
    status("RssAnon:")
}

/// The most resident memory since the start or [`reset_peak`], in bytes.
pub(crate) fn peak_bytes() -> Result<u64> {
    status("VmHWM:")
}

/// Starts [`peak_bytes`] again from what is resident now.
pub(crate) fn reset_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of the memory")
}

/// Memory that the machine has to give, in bytes.
pub(crate) fn available_bytes() -> Result<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

fn status(name: &str) -> Result<u64> {
    field("/proc/self/status", name)
}

/// A field in KiB of a file of lines `NAME NUMBER kB`.
fn field(path: &str, name: &str) -> Result<u64> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{path}: memory is measured on Linux only"))?;
    let line = text.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    Ok(number.with_context(|| format!("{path} has no {name}"))? * 1024)
}
