//! Lines put aside on disk until it is known which of them are wanted.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::failure::{Failure, Outcome};

/// A temporary file of lines; removed when dropped.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    writer: BufWriter<File>,
    buffer: Vec<u8>,
}

impl Spool {
    pub(crate) fn new() -> Outcome<Self> {
        // Process numbers come again, in containers very soon.
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let path = std::env::temp_dir().join(format!("simstore-{}-{now}.spool", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let writer = BufWriter::with_capacity(1 << 16, file.map_err(failed(&path))?);
        // Where an open file may lose its name, it does so now: then not even a killed command leaves it.
        let _ = std::fs::remove_file(&path);
        Ok(Spool { path, writer, buffer: Vec::new() })
    }

    /// Puts a line aside; it may hold anything.
    pub(crate) fn push(&mut self, line: &[u8]) -> Outcome {
        let length = (line.len() as u64).to_le_bytes();
        let written = self.writer.write_all(&length).and_then(|()| self.writer.write_all(line));
        written.map_err(failed(&self.path))
    }

    /// Visits all lines in order.
    pub(crate) fn visit(&mut self, mut visitor: impl FnMut(&[u8]) -> Outcome) -> Outcome {
        let failed = failed(&self.path);
        self.writer.flush().map_err(&failed)?;
        let mut file = self.writer.get_ref();
        file.rewind().map_err(&failed)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut length = [0; 8];
        loop {
            match reader.read_exact(&mut length) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read.map_err(&failed)?,
            }
            self.buffer.clear();
            (&mut reader).take(u64::from_le_bytes(length)).read_to_end(&mut self.buffer).map_err(&failed)?;
            visitor(&self.buffer)?;
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Failed(format!("{}: cannot put lines aside: {error}", path.display()))
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What cannot be removed is no more than litter.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let mut spool = Spool::new().unwrap();
        let lines = [&b"a"[..], b"", b"b\nc", &[7; 100_000]];
        for line in lines {
            spool.push(line).unwrap();
        }
        let mut back = Vec::new();
        let visited = spool.visit(|line| {
            back.push(line.to_vec());
            Ok(())
        });
        visited.unwrap();
        assert_eq!(back, lines);
        let path = spool.path.clone();
        drop(spool);
        assert!(!path.exists());
    }
}
