//! Shared code of the programs in `src/bin`, which run deduplication crates: reads the documents of a corpus, and writes the
//! ids of kept documents.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use serde::Deserialize;

/// Arguments of a program: `PROGRAM CORPUS KEPT SIMILARITY`.
pub struct DedupTask {
    /// Path of the corpus, in JSON Lines.
    pub corpus: String,
    /// Path of the output: ids of the kept documents.
    pub kept: String,
    /// Smallest Jaccard similarity of a duplicate to a kept document.
    pub similarity: f64,
}

/// Document in a line of the corpus, as `benches/synth` writes it.
#[derive(Deserialize)]
pub struct CorpusDocument {
    /// Id of the document.
    pub id: u64,
    /// Text to compare.
    pub text: String,
}

impl DedupTask {
    /// Reads the arguments of the command line.
    ///
    /// # Errors
    ///
    /// If there are not exactly three arguments, or the similarity is not a number.
    pub fn from_arguments() -> Result<DedupTask, Box<dyn Error>> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [corpus, kept, similarity] =
            arguments.try_into().map_err(|_| "give three arguments: CORPUS KEPT SIMILARITY")?;
        Ok(DedupTask { corpus, kept, similarity: similarity.parse()? })
    }

    /// Iterates over the lines of the corpus.
    ///
    /// # Errors
    ///
    /// If the corpus cannot be opened.
    pub fn lines(&self) -> io::Result<impl Iterator<Item = io::Result<String>> + use<>> {
        Ok(BufReader::with_capacity(1 << 20, File::open(&self.corpus)?).lines())
    }

    /// Writes the ids of kept documents, one per line.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_kept(&self, ids: impl IntoIterator<Item = u64>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&self.kept)?);
        ids.into_iter().try_for_each(|id| writeln!(file, "{id}"))?;
        file.flush()
    }
}
