//! The number of files that the process may open: a connection counts as a file.

/// Open files for the store and its merges, besides the connections.
const STORE_FILES: usize = 512;

/// Raises the limit of open files as far as the user may, and returns how many connections it allows. The usual limit at the start of
/// a process, 1024, is too low for a service.
#[cfg(unix)]
pub(crate) fn raise_file_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    // `None` is no limit.
    let files = if is_raised { maximum } else { current };
    files.map_or(usize::MAX, |files| connections_of(usize::try_from(files).unwrap_or(usize::MAX)))
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_file_limit() -> usize {
    usize::MAX
}

/// Returns the number of connections that a limit of open files allows. The store needs some files, and most of very few.
#[cfg(unix)]
fn connections_of(files: usize) -> usize {
    files.saturating_sub(STORE_FILES.min(files / 2)).max(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_files() {
        assert_eq!(connections_of(65_536), 65_536 - 512);
        assert_eq!(connections_of(1024), 512);
        assert_eq!(connections_of(100), 50);
        assert_eq!(connections_of(1), 1);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_allowed() {
        let connections = raise_file_limit();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert!(limit.maximum.is_none_or(|maximum| (connections as u64) < maximum.max(2)));
    }
}
