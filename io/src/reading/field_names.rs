//! What the fields of a document are called.

use crate::Record;
use crate::bytes::encoding;
use crate::formats::json;
use crate::reading::record::Content;

impl Record {
    /// The names of its fields: of a JSON object, the columns of a row, the headers of a record of a web archive. A text
    /// file has none, and neither has a line that is malformed.
    pub fn field_names(&self) -> Vec<String> {
        match self.content() {
            Content::Jsonl { line, encoding } => {
                json::names(&encoding::decode_line(line, *encoding).0).unwrap_or_default()
            }
            Content::Table { header, .. } => header.columns.clone(),
            Content::Warc { bytes, header_bytes } => {
                let header = String::from_utf8_lossy(&bytes[..*header_bytes]);
                let name = |line: &str| line.split_once(':').map(|(name, _)| name.to_owned());
                header.lines().skip(1).filter_map(name).collect()
            }
            Content::Text(_) | Content::Given(_) => Vec::new(),
            #[cfg(feature = "parquet")]
            Content::Parquet(row) => {
                row.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
            }
        }
    }
}
