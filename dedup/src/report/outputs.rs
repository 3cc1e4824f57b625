//! The files that are written.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use crate::corpus::file_list::FileList;
use simstore_corpus::{Diagnostic, Observer};
use simstore_io::output::{UnfinishedOutputs, is_folder_path, output_format, resolve_path};
use simstore_io::reading::FileSet;
use simstore_io::result_table;
use simstore_io::{DocumentFormat, Format};

/// The files that are asked for; all of them appear together, when all are complete. `-` is standard output.
#[derive(Default)]
pub struct Outputs {
    /// The input without its duplicates, in its own format; of text files, their paths, or where the path ends in a slash, a folder
    /// of their copies; of fingerprints, `HEX<TAB>ID`.
    pub output: Option<PathBuf>,
    /// The whole input, each document with the number of its cluster, in a field or column.
    pub annotated: Option<PathBuf>,
    /// The name of that field or column; `cluster` by default.
    pub cluster_field: Option<String>,
    /// Rows of the documents in clusters: id, cluster, representative, distance or similarity to it; with a store, whether it was
    /// stored.
    /// Where ids repeat, rows and lists also tell where a document stands.
    pub clusters: Option<PathBuf>,
    /// Rows of all pairs of near documents: a, b, distance, similarity. With a store, pairs of a new and a stored document follow.
    pub pairs: Option<PathBuf>,
    /// Ids of kept documents.
    pub keep_list: Option<PathBuf>,
    /// Ids of duplicates.
    pub remove_list: Option<PathBuf>,
    /// Whether that list also names the document that each duplicate is a duplicate of, as [`Removed`](crate::report::Removed) does, and the
    /// similarity or distance of the two.
    pub reasons: bool,
    /// Whether ids in lists, and the paths of text files that are left, end in a zero byte instead of a line feed, and stand as they
    /// are: names of files may hold all other bytes.
    pub null: bool,
    /// Whether written documents may replace an input. Removed documents are lost then.
    pub force: bool,
    /// Whether a run on files that hold no document succeeds, and writes empty outputs. By default such a run fails and leaves
    /// outputs and stores as they are: most often an input was named wrongly. Documents that a program hands over may be none.
    pub allow_empty: bool,
    /// Whether rows are objects of JSON where the name of their file says no format.
    pub json: bool,
    /// Writer for `-`, if it is not the standard output of the process.
    pub stdout: Option<Box<dyn Write + Send>>,
    /// Where files that are not finished are listed.
    pub unfinished: UnfinishedOutputs,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

impl Outputs {
    fn rows(&self) -> impl Iterator<Item = &Path> {
        [&self.clusters, &self.pairs, &self.keep_list, &self.remove_list]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// All that are asked for.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.documents().chain(self.rows())
    }

    fn documents(&self) -> impl Iterator<Item = &Path> {
        [&self.output, &self.annotated].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Warns of outputs that the next run on the same folders would read.
    pub(crate) fn warn_of_folders(&self, inputs: &[PathBuf], observer: &dyn Observer) {
        let folders =
            inputs.iter().filter(|input| input.is_dir()).filter_map(|input| input.canonicalize().ok());
        for folder in folders {
            for output in self.all().filter(|output| resolve_path(output).starts_with(&folder)) {
                observer.diagnostic(&Diagnostic::Warning(&format!(
                    "{}: is inside an input directory, so the next run will read it: write it elsewhere",
                    output.display()
                )));
            }
        }
    }

    /// Refuses what cannot be written.
    pub(crate) fn check(&self) -> Result<()> {
        if self.reasons && self.remove_list.is_none() {
            return Err(Error::BadArgument("option `reasons` needs option `remove_list`".to_owned()));
        }
        self.check_null()?;
        self.rows().try_for_each(result_table::check_name)?;
        self.documents().filter(|path| !is_folder_path(path)).try_for_each(output_format::check_name)?;
        let others = self.rows().chain(self.annotated.as_deref());
        if let Some(path) = others.into_iter().find(|path| is_folder_path(path)) {
            return Err(Error::BadArgument(format!(
                "{}: is a directory; give the path of a file",
                path.display()
            )));
        }
        let all: Vec<&Path> = self.all().collect();
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

    /// Refuses what does not go with the inputs: documents and fingerprints are written as they stand, and nothing but
    /// the input without its duplicates may take the place of an input.
    pub(crate) fn check_with_inputs<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Path>,
        file_list: Option<&FileList>,
        add: bool,
    ) -> Result<()> {
        if let Some(file_list) = file_list
            && self.write_documents()
            && let Some([(one, format), (other, another)]) = file_list.mixed()
        {
            return Err(Error::BadArgument(format!(
                "documents are written in one format, but {} holds {format} and {} holds {another}: process each format separately, or \
                 use option `keep_list` or option `remove_list`",
                one.display(),
                other.display()
            )));
        }
        let format = file_list.map(FileList::format);
        self.documents().try_for_each(|path| check_format(path, format))?;
        let inputs = FileSet::new(inputs);
        for path in self.all().filter(|path| inputs.contains_path(path)) {
            let refused = |reason: &str| Err(Error::BadArgument(format!("{}: {reason}", path.display())));
            if self.rows().any(|rows| rows == path) {
                return refused("is an input; a table must not replace it");
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

    /// Whether none is asked for.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Whether one of them is standard output, where nothing else is printed then.
    pub fn use_stdout(&self) -> bool {
        self.all().any(|path| path.as_os_str() == "-")
    }

    /// Whether the documents themselves are written, and so read again.
    pub(crate) fn write_documents(&self) -> bool {
        self.output.is_some() || self.annotated.is_some()
    }

    /// Whether the run has to find all pairs.
    pub(crate) fn write_pairs(&self) -> bool {
        self.pairs.is_some()
    }
}

/// Refuses an output name whose extension contradicts the format of the documents. `format` is `None` for fingerprints and
/// `Some(None)` for inputs without documents.
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
