//! The number of files that the process may open: a connection counts as a file.

/// Open files for the store and its merges, besides the connections.
const STORE_FILES: usize = 512;

/// Largest limit that macOS accepts, where the maximum may be unlimited.
#[cfg(unix)]
const MACOS_LIMIT: u64 = 10_240;

/// Raises the limit of open files as far as the user may, and returns how many connections it allows. The usual limit at the start of
/// a process, 1024, is too low for a service.
#[cfg(unix)]
pub(crate) fn raise_file_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let raise = |limit: Option<u64>| {
        let is_higher = current.is_some_and(|current| limit.is_none_or(|limit| limit > current));
        is_higher && setrlimit(Resource::Nofile, Rlimit { current: limit, maximum }).is_ok()
    };
    if !raise(maximum) {
        raise(Some(MACOS_LIMIT));
    }
    let files = getrlimit(Resource::Nofile).current;
    files.map_or(usize::MAX, |files| connections_of(usize::try_from(files).unwrap_or(usize::MAX)))
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_file_limit() -> usize {
    usize::MAX
}

/// Returns the number of connections that a limit of open files allows. Keeps 512 files for the store, or half of a limit below
/// 1,024.
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
    fn the_limit_is_not_lowered() {
        let limit =
            || rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        let before = limit();
        let connections = raise_file_limit();
        assert!(limit() >= before);
        assert_eq!(connections, raise_file_limit());
        assert!(connections as u64 <= limit());
    }
}
