//! What the programs share: the documents of a file, and the ids of those that are kept.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use serde::Deserialize;

/// What a program is given: `PROGRAM CORPUS KEPT SIMILARITY`.
pub struct Task {
    /// The documents, as JSON Lines.
    pub corpus: String,
    /// The file for the ids of kept documents.
    pub kept: String,
    /// The least similarity of what goes.
    pub similarity: f64,
}

/// A line of the corpus, as `benches/synth` writes it.
#[derive(Deserialize)]
pub struct Document {
    /// Its number.
    pub id: u64,
    /// What is compared.
    pub text: String,
}

impl Task {
    /// Those of the command.
    pub fn from_arguments() -> Result<Task, Box<dyn Error>> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [corpus, kept, similarity] =
            arguments.try_into().map_err(|_| "give three arguments: CORPUS KEPT SIMILARITY")?;
        Ok(Task { corpus, kept, similarity: similarity.parse()? })
    }

    /// Of the corpus.
    pub fn lines(&self) -> io::Result<impl Iterator<Item = io::Result<String>> + use<>> {
        Ok(BufReader::with_capacity(1 << 20, File::open(&self.corpus)?).lines())
    }

    /// Writes ids, one a line.
    pub fn write_kept(&self, ids: impl IntoIterator<Item = u64>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&self.kept)?);
        ids.into_iter().try_for_each(|id| writeln!(file, "{id}"))?;
        file.flush()
    }
}
