//! Output options: the files that a run writes, and checks of their names.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use crate::documents::file_list::FileList;
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::{UnfinishedOutputs, is_folder_path, output_format, resolve_path};
use simstore_io::reading::FileSet;
use simstore_io::result_table;
use simstore_io::{DocumentFormat, Format};

/// Output files of a run, and how they are written. The files are written under hidden names, and renamed to the
/// requested paths when all of them are complete. The path `-` is standard output.
#[derive(Default)]
pub struct Outputs {
    /// Path of the output of kept documents, in the format of the input. If the documents are text files, the
    /// output is a list of their paths; or if this path ends in a slash, a folder with copies of the files.
    /// Fingerprints are written as lines `HEX<TAB>ID`.
    pub output: Option<PathBuf>,
    /// Path of the output of all documents, with the number of the cluster of each document in a field or column.
    pub annotated: Option<PathBuf>,
    /// Name of the field or column for cluster numbers in the output [`annotated`](Self::annotated); `cluster` by
    /// default.
    pub cluster_field: Option<String>,
    /// Path of the table of all documents that are in clusters. Its columns are the id, the cluster number, the
    /// representative, and the distance or similarity to the representative. With reference stores, a column says
    /// whether the representative is a stored document. If ids repeat in the input, tables and lists also have
    /// the location `FILE:LINE` of each document.
    pub clusters: Option<PathBuf>,
    /// Path of the table of all near pairs. Its columns are the ids of the two documents, and their distance or
    /// similarity. With reference stores, the last rows are pairs of an input document and a stored document.
    pub pairs: Option<PathBuf>,
    /// Path of the list of the ids of kept documents.
    pub keep_list: Option<PathBuf>,
    /// Path of the list of the ids of removed documents.
    pub remove_list: Option<PathBuf>,
    /// Path of the report page: one HTML file with counts, a histogram of similarities, clusters, and removed documents beside the
    /// kept ones, word by word. For the texts, the inputs are read again.
    pub report: Option<PathBuf>,
    /// Whether the list of removed documents also has the document that each one duplicates, as in
    /// [`RemovedDocument`](crate::report::RemovedDocument), and the similarity or distance of the two.
    pub reasons: bool,
    /// Whether ids in lists, and the paths of kept text files, are written unescaped and end in a zero byte
    /// instead of a line feed. This is safe for all file names, because they can contain a line feed, but no zero
    /// byte.
    pub null: bool,
    /// Whether an output of documents may overwrite an input file. The removed documents are then lost.
    pub force: bool,
    /// Whether a run on files without documents succeeds and writes empty outputs. By default it fails, and
    /// outputs and stores stay unchanged, because usually an input path is wrong. Inputs in memory may always
    /// be empty.
    pub allow_empty: bool,
    /// Whether a table is written as lines of JSON objects, if the name of its file does not imply a format.
    pub json: bool,
    /// Writer that gets an output with the path `-`; by default the standard output of the process.
    pub stdout: Option<Box<dyn Write + Send>>,
    /// Registry of the unfinished output files, which are removed if the process is interrupted.
    pub unfinished: UnfinishedOutputs,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.paths()).finish()
    }
}

impl Outputs {
    fn table_paths(&self) -> impl Iterator<Item = &Path> {
        [&self.clusters, &self.pairs, &self.keep_list, &self.remove_list]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// Returns the paths of all requested outputs.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.document_paths().chain(self.table_paths()).chain(self.report.as_deref())
    }

    fn document_paths(&self) -> impl Iterator<Item = &Path> {
        [&self.output, &self.annotated].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Warns of outputs inside an input folder, because the next run would read them.
    pub(crate) fn warn_inside_inputs(&self, inputs: &[PathBuf], observer: &dyn Observer) {
        let folders =
            inputs.iter().filter(|input| input.is_dir()).filter_map(|input| input.canonicalize().ok());
        for folder in folders {
            for output in self.paths().filter(|output| resolve_path(output).starts_with(&folder)) {
                observer.diagnostic(&Diagnostic::Warning(&format!(
                    "{}: is inside an input directory, so the next run will read it: write it elsewhere",
                    output.display()
                )));
            }
        }
    }

    /// Fails if output options contradict each other, or if a path is invalid for its output.
    pub(crate) fn check(&self) -> Result<()> {
        if self.reasons && self.remove_list.is_none() {
            return Err(Error::BadArgument("option `reasons` needs option `remove_list`".to_owned()));
        }
        self.check_null()?;
        self.table_paths().try_for_each(result_table::check_name)?;
        self.report.as_deref().map_or(Ok(()), check_report_name)?;
        self.document_paths().filter(|path| !is_folder_path(path)).try_for_each(output_format::check_name)?;
        let others = self.table_paths().chain(self.annotated.as_deref()).chain(self.report.as_deref());
        if let Some(path) = others.into_iter().find(|path| is_folder_path(path)) {
            return Err(Error::BadArgument(format!(
                "{}: is a directory; give the path of a file",
                path.display()
            )));
        }
        let all: Vec<&Path> = self.paths().collect();
        let places: Vec<PathBuf> = all.iter().map(|path| resolve_path(path)).collect();
        match all.iter().enumerate().find(|&(at, _)| places[..at].contains(&places[at])) {
            Some((_, path)) if path.as_os_str() == "-" => {
                Err(Error::BadArgument("only one output can be standard output (`-`)".to_owned()))
            }
            Some((_, path)) => Err(Error::BadArgument(format!("{}: given for two outputs", path.display()))),
            None => Ok(()),
        }
    }

    fn check_null(&self) -> Result<()> {
        if self.null && self.reasons {
            return Err(Error::BadArgument(
                "option `null` works for lists of ids, not with option `reasons`".to_owned(),
            ));
        }
        let mut lists = self.keep_list.iter().chain(&self.remove_list).filter(|_| self.null);
        let has_format = |list: &&PathBuf| {
            !matches!(
                output_format::format_from_name(list),
                None | Some(Format::Documents(DocumentFormat::Text))
            )
        };
        match lists.find(has_format) {
            Some(list) => Err(Error::BadArgument(format!(
                "{}: option `null` works for plain lists, not for tables: use a name without a table extension",
                list.display()
            ))),
            None => Ok(()),
        }
    }

    /// Fails if the outputs do not fit the inputs. Documents are written in the format of the inputs, so all
    /// inputs must have one format, and the extension of the output must agree. Only an output of documents
    /// may overwrite an input.
    pub(crate) fn check_with_inputs<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Path>,
        file_list: Option<&FileList>,
        add: bool,
    ) -> Result<()> {
        if let Some(file_list) = file_list
            && self.writes_documents()
            && let Some([(one, format), (other, another)]) = file_list.mixed_formats()
        {
            return Err(Error::BadArgument(format!(
                "documents are written in one format, but {} holds {format} and {} holds {another}: process each format separately, or \
                 use option `keep_list` or option `remove_list`",
                one.display(),
                other.display()
            )));
        }
        let format = file_list.map(FileList::format);
        self.document_paths().try_for_each(|path| check_format(path, format))?;
        let inputs = FileSet::new(inputs);
        for path in self.paths().filter(|path| inputs.contains_path(path)) {
            let refused = |reason: &str| Err(Error::BadArgument(format!("{}: {reason}", path.display())));
            if self.table_paths().any(|rows| rows == path) {
                return refused("is an input; a table must not replace it");
            }
            if self.report.as_deref() == Some(path) {
                return refused("is an input; a report must not replace it");
            }
            if format == Some(Some(DocumentFormat::Text)) {
                return refused("is an input; a list of paths must not replace it");
            }
            if add {
                return refused(
                    "is an input: with option `add`, the next run would find no new documents in it and empty it",
                );
            }
            if !self.force {
                return refused("is also an input; option `force` overwrites it");
            }
        }
        Ok(())
    }

    /// Whether no outputs are requested.
    pub fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Whether one of the outputs is standard output, so that nothing else may be printed there.
    pub fn uses_stdout(&self) -> bool {
        self.paths().any(|path| path.as_os_str() == "-")
    }

    /// Whether an output of documents is requested, so that the inputs are read a second time.
    pub(crate) fn writes_documents(&self) -> bool {
        self.output.is_some() || self.annotated.is_some()
    }

    /// Whether a requested output has texts of the inputs, so that these are read again.
    pub(crate) fn reads_again(&self) -> bool {
        self.writes_documents() || self.report.is_some()
    }

    /// Whether a requested output lists all near pairs.
    pub(crate) fn needs_pairs(&self) -> bool {
        self.pairs.is_some()
    }
}

/// Fails if the name of a report page has the extension of another format.
fn check_report_name(path: &Path) -> Result<()> {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_deref().and_then(std::ffi::OsStr::to_str) {
        None | Some("html" | "htm") => Ok(()),
        Some(_) => Err(Error::BadArgument(format!(
            "{}: a report is an HTML page: use a name that ends in .html",
            path.display()
        ))),
    }
}

/// Fails if the extension of an output path contradicts the format of the documents. `format` is `None` for
/// fingerprints, and `Some(None)` if the format is unknown before the documents are read.
pub(crate) fn check_format(path: &Path, format: Option<Option<DocumentFormat>>) -> Result<()> {
    if is_folder_path(path) {
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
    let named = output_format::format_from_name(path);
    let said = match (named, format) {
        (None, _) | (_, Some(None)) => return Ok(()),
        (Some(Format::Documents(DocumentFormat::Tsv | DocumentFormat::Text) | Format::HexLines), None) => {
            return Ok(());
        }
        // Annotated text files are written as a table of paths and cluster numbers.
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
