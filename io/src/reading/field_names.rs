//! Lists the field names of a record.

use crate::Record;
use crate::bytes::encoding;
use crate::formats::json;
use crate::reading::record::RecordContent;

impl Record {
    /// Returns the names of the record's fields: the keys of a JSON object, the columns of a row, the headers
    /// of a WARC record.
    ///
    /// Returns an empty list for a text file, a malformed JSON line, and a document from an iterator.
    pub fn field_names(&self) -> Vec<String> {
        match self.content() {
            RecordContent::Jsonl { line, encoding } => {
                json::field_names(&encoding::decode_line(line, *encoding).0).unwrap_or_default()
            }
            RecordContent::Table { header, .. } => header.columns.clone(),
            RecordContent::Warc { bytes, header_bytes } => {
                let header = String::from_utf8_lossy(&bytes[..*header_bytes]);
                let name = |line: &str| line.split_once(':').map(|(name, _)| name.to_owned());
                header.lines().skip(1).filter_map(name).collect()
            }
            RecordContent::Text(_) | RecordContent::InMemory(_) => Vec::new(),
            #[cfg(feature = "parquet")]
            RecordContent::Parquet(row) => {
                row.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
            }
        }
    }
}
