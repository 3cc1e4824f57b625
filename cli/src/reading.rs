//! Opening a store to read it.

use std::path::Path;

use simstore::{Fingerprint, Snapshot};
use simstore_corpus::describe::torn_ends;

use crate::failure::{Outcome, complain};

/// Opens a store to read it; tells if the end of a log cannot be read, as what stood there is missing then from all answers.
pub(crate) fn open<F: Fingerprint>(path: &Path) -> Outcome<Snapshot<F>> {
    // What looks torn because another process is writing it is whole a moment later.
    let store = Snapshot::<F>::open_settled(path)?;
    for torn in torn_ends(&store) {
        complain(&format!("warning: results do not include these lost writes: {torn}"));
    }
    Ok(store)
}
