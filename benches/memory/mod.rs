//! Peak memory of this process, for the benches.

/// Resets the peak memory to the current memory.
pub(crate) fn reset_peak_memory() {
    // Without Linux or permission, this fails, and the peak includes all earlier rows.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak resident memory of this process in MiB; `None` without Linux's `/proc`.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}
