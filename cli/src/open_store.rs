//! Opening of existing stores, with warnings about torn logs.

use std::path::Path;

use simstore::{Fingerprint, Snapshot, Store, StoreOptions};
use simstore_corpus::describe::torn_log_tails;

use crate::command_error::{CommandResult, print_message};

/// Opens a store for reading. If the tail of a log is torn, warns that results do not include the lost writes.
pub(crate) fn open_snapshot<F: Fingerprint>(path: &Path) -> CommandResult<Snapshot<F>> {
    // A log may look torn while another process appends a record. Opening again shortly after reads the whole record.
    let store = Snapshot::<F>::open_retrying(path)?;
    for torn in torn_log_tails(&store) {
        print_message(&format!("warning: results do not include these lost writes: {torn}"));
    }
    Ok(store)
}

/// Opens a store for writing. If opening dropped a torn log tail, warns about the lost writes.
pub(crate) fn open_store<F: Fingerprint>(path: &Path, options: StoreOptions) -> CommandResult<Store<F>> {
    let store = Store::open(path, options)?;
    warn_about_torn_tail(&store);
    Ok(store)
}

/// If opening the store dropped a torn log tail, warns about it: the tail may be damage rather than an unfinished write.
pub(crate) fn warn_about_torn_tail<F: Fingerprint>(store: &Store<F>) {
    if let Some(torn_tail) = store.torn_tail() {
        print_message(&format!("warning: {torn_tail}"));
    }
}
