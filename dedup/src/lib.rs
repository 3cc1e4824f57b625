//! Deduplication of a corpus: finds clusters of near-duplicates, and the documents to keep. Stores are optional: documents can be
//! compared with stores, and added to one.
//!
//! [`find`] reads [files, documents or fingerprints](Inputs), and compares all with all as [`Options`] say. It returns the results
//! as [`Found`]. [`Found::finish`] publishes the requested [`Files`] and changes the store. Until then the run has no visible effect,
//! and a [`Watch`] can stop it.
//!
//! The result depends only on the input and the options, not on the number of threads. By [similarity](Compare::Similar), a document
//! takes about 140 bytes of memory. By [distance](Compare::Distance), a 64-bit fingerprint takes 28 bytes, and a 128-bit fingerprint
//! 52 bytes. Ids that are not positions, near-duplicates and pairs take more. Data that exceeds [`Options::memory`] goes to disk.
//!
//! [`make_shard`] does a share of the work on one of several machines. [`estimate`] estimates the work of a run.
//! [`sample_pairs`] shows pairs above and below a threshold. `examples/dedup.rs` is a complete program.
//!
//! ```
//! use simstore_dedup::{Answer, Files, Options};
//! use simstore_corpus::Inputs;
//! use simstore_io::{Document, DocumentId};
//!
//! let documents = [("a", "To be, or not to be, that is the question"), ("b", "something else altogether")];
//! let twice = documents.into_iter().chain([documents[0]]);
//! let inputs = twice.map(|(id, text)| Ok(Document::new(DocumentId::Name(id.to_owned()), text.to_owned())));
//! let answer = simstore_dedup::find(&Inputs::of_documents(inputs), &Options::default(), Files::default(), &())?;
//! let Answer::Found(found) = answer else { unreachable!("nothing is added to a store") };
//! assert_eq!((found.totals().documents, found.totals().kept), (3, 2));
//! for cluster in found.clusters() {
//!     for duplicate in cluster?.members.iter().filter(|member| !member.is_kept) {
//!         assert_eq!((duplicate.document, duplicate.similarity), (2, Some(1.0)));
//!     }
//! }
//! # Ok::<(), simstore::Error>(())
//! ```

#![forbid(unsafe_code)]

use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_text::Sketcher;

use self::found::AnyJob;
use self::parts::Parts;
use simstore_corpus::spill::Budget;
use simstore_corpus::{Counts, InputKind, Inputs, Watch};
use simstore_io::output::Unfinished;

mod against;
mod asking;
mod comparing;
mod documents;
mod estimate;
mod files;
mod foretold;
mod found;
mod into_similar;
mod kept;
mod last_run;
mod model;
mod names_in_use;
mod options;
mod outcome;
mod outputs;
mod pair_sample;
mod parts;
mod pieces;
mod prepared;
mod profiles;
mod question;
mod room;
mod run;
mod sealed;
mod similar_stores;
mod stages;
mod summary;
mod tables;
mod told;
mod totals;
mod written;
mod written_format;

pub use self::documents::{Keep, moment_key, number_key};
pub use self::estimate::{Estimate, FilesOfFormat, estimate};
pub use self::files::Files;
pub use self::foretold::Search;
pub use self::found::{Answer, Cluster, Found, Kept, Member, NearPair, Removed};
pub use self::options::{Add, ClusterBy, Options, Resume};
pub use self::pair_sample::{PairSample, SampledPair, SimilarityBin, sample_pairs};
pub use self::parts::{Shard, Tally};
pub use self::pieces::{ComponentStars, LedSet, SimilarSearch, SketchedSet};
pub use self::profiles::profile_with;
pub use self::question::{Compare, CompareOptions, Distance, Question, Similar, Verify};
pub use self::run::AddedBefore;
pub use self::similar_stores::SimilarStores;
pub use self::stages::Boilerplate;
pub use self::summary::Summary;
pub use self::totals::{Largest, Spilled, Totals};

/// The examples of a page for users, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Library;

/// Reads all inputs, and finds the near-duplicates.
///
/// # Errors
/// - [`Error::BadArgument`] if options or files are invalid, or do not apply to the input.
/// - [`Error::Refused`] if an input changes during the run, if the memory limit is too low, or if a store is missing.
/// - [`Error::Cancelled`] if the watch says so.
/// - [`Error::BadInput`] for a malformed document, unless malformed documents are [skipped](Inputs::skip_bad).
/// - Errors of reading, of writing, and of the store.
pub fn find(inputs: &Inputs, options: &Options, files: Files, watch: &dyn Watch) -> Result<Answer> {
    let found = match options.width()? {
        Width::Bits64(()) => run::find::<u64>(inputs, options, files, watch)?
            .map(|job| Ok((Totals::of(&job)?, AnyJob::Bits64(Box::new(job))))),
        Width::Bits128(()) => run::find::<u128>(inputs, options, files, watch)?
            .map(|job| Ok((Totals::of(&job)?, AnyJob::Bits128(Box::new(job))))),
    };
    match found {
        Ok(found) => found.map(|(totals, job)| Answer::Found(Found { job, totals: Box::new(totals) })),
        Err(added) => Ok(Answer::AddedBefore(added)),
    }
}

/// Makes the parts of a shard in the folder of [`Options::resume`]. The shards may be made on different machines. When the parts
/// of all shards are in one folder, [`find`] with that folder joins them.
///
/// # Errors
/// The errors of [`find`].
pub fn make_shard(
    inputs: &Inputs,
    shard: Shard,
    options: &Options,
    unfinished: &Unfinished,
    watch: &dyn Watch,
) -> Result<(Counts, Tally)> {
    each_width!(options.width()?, type F => make_shard_of::<F>(inputs, shard, options, unfinished, watch))
}

fn make_shard_of<F: Fingerprint>(
    inputs: &Inputs,
    shard: Shard,
    options: &Options,
    unfinished: &Unfinished,
    watch: &dyn Watch,
) -> Result<(Counts, Tally)> {
    let kind = inputs.kind()?;
    options.check_with(kind)?;
    if inputs.are_given() {
        prepared::check_given(kind, options, &Files::default())?;
    }
    let Some(Resume { folder, section: section_bytes }) = &options.resume else {
        return Err(Error::BadArgument(
            "option `shard` needs option `resume`, the directory for its parts".to_owned(),
        ));
    };
    let profile = options.profile_with(None)?;
    profile.check_bits(F::BITS)?;
    let inputs =
        inputs.with_extra_field(options.keep.field()).within(Budget::new(options.memory).of_reading());
    let question = options.ask::<F>(InputKind::Documents, &[], &[])?.told(watch);
    let files: Vec<_> = inputs.files().filter_map(Result::ok).collect();
    let paths = files.iter().map(|file| &*file.path);
    let sketcher = options.of_files(paths, question, watch).sketcher(question)?;
    let sketcher = sketcher.as_ref();
    let profile = sketcher.map_or(&profile, Sketcher::profile);
    let (shard, section_bytes) = (Some(shard), *section_bytes);
    let parts = Parts { folder, shard, inputs: &inputs, profile, sketcher, section_bytes, unfinished, watch };
    parts.visit::<F>(|_| Ok(()))
}
