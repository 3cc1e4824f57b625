//! Whether the name of a file of documents goes with the format of these.

use std::path::Path;

use simstore::{Error, Result};

use simstore_io::output::{format_of_name, names_folder};
use simstore_io::{DocumentFormat, Format};

/// Refuses an output name whose extension contradicts the format of the documents. `format` is `None` for fingerprints and
/// `Some(None)` for inputs without documents.
pub(crate) fn check_format(path: &Path, format: Option<Option<DocumentFormat>>) -> Result<()> {
    if names_folder(path) {
        let holds = match format {
            Some(None | Some(DocumentFormat::Text)) => return Ok(()),
            Some(Some(format)) => format.name(),
            None => "fingerprints",
        };
        return Err(Error::BadArgument(format!(
            "{}: only text files can be copied to a directory, but the inputs are {holds}: give a file as output",
            path.display()
        )));
    }
    let named = format_of_name::format(path);
    let said = match (named, format) {
        (None, _) | (_, Some(None)) => return Ok(()),
        (Some(Format::Documents(DocumentFormat::Tsv | DocumentFormat::Text) | Format::HexLines), None) => {
            return Ok(());
        }
        // Of texts, the paths are written; with their clusters, a table.
        (Some(Format::Documents(DocumentFormat::Tsv)), Some(Some(DocumentFormat::Text))) => return Ok(()),
        (Some(Format::Documents(named)), Some(Some(format))) if named == format => return Ok(()),
        (_, None) => "lines HEX<TAB>ID, as in .hex and .tsv files".to_owned(),
        (_, Some(Some(DocumentFormat::Text))) => "a list of paths, as in .txt files".to_owned(),
        (_, Some(Some(format))) => format!("in the format of the inputs ({format})"),
    };
    Err(Error::BadArgument(format!(
        "{}: the output is always {said}: use this extension, or none",
        path.display()
    )))
}
