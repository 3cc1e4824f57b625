//! What the benches say of memory.

/// Forgets the most memory that this process has had.
pub(crate) fn reset_peak_memory() {
    // Where this is not Linux, or not allowed, the peak is that of all rows so far.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process has had, in MiB, where Linux tells it.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}
