//! What the search of a sample foretells of the search of all: how many candidates there will be, and how long they take.
//!
//! Documents of one template that are just less similar than was asked for are a crowd: each meets all others, and none is a
//! duplicate. They are looked for by their rare shingles, so that few of them are compared.

use simstore::Result;
use simstore_text::{Profile, Sketched};

use super::documents::Ranks;
use super::model::SketchRow;
use super::options::Options;
use super::question::Question;
use super::room::Room;
use super::stages::similar::{Search, Searched, Wanted};
use super::stages::{FeaturesWriter, Marks, distinct};
use crate::output::Unfinished;
use crate::spill::{Budget, RowsWriter, Temporary};
use crate::watch::Step;
use crate::{InputFile, Inputs, Watch};

/// Documents that are searched, at most: all of them may be candidates of one another. And bytes of their texts.
const SEARCHED: usize = 1024;
const SEARCHED_BYTES: usize = 64 << 20;
/// Places of a file that is large or alone, evenly spread, where it can be read from the middle.
const PLACES: usize = 64;

/// What it takes to compare two texts by their shingles, in seconds on one core.
const COMPARED: f64 = 2e-6;
/// The same for what is needed of a member of a crowd, and to look at the sketches of two.
const ASKED: f64 = 60e-6;
const LOOKED_AT: f64 = 6e-9;

/// What is foretold of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Foretold {
    /// Documents that were searched.
    pub(super) sampled: u64,
    /// Documents that are in crowds.
    pub(super) crowded: f64,
    /// Candidates among all documents.
    pub(super) candidates: f64,
    /// What comparing them takes, in seconds on one core.
    pub(super) seconds: f64,
}

/// The documents that are searched.
struct Sample<'a> {
    profile: &'a Profile,
    sketches: RowsWriter<SketchRow>,
    features: FeaturesWriter,
    bytes: usize,
    documents: usize,
}

impl Sample<'_> {
    fn is_full(&self) -> bool {
        self.documents == SEARCHED || self.bytes > SEARCHED_BYTES
    }

    /// Takes the first documents of some inputs.
    fn add(&mut self, inputs: &Inputs, most: usize, step: &Step<'_>) -> Result<()> {
        let options = inputs.options();
        for record in inputs.records().take(most) {
            if self.is_full() {
                break;
            }
            step.add(1)?;
            // What is malformed was told before.
            let Ok(document) = record.and_then(|record| record.document(options)) else { continue };
            self.bytes += document.text.len();
            let features = self.profile.feature_set(&document.text);
            self.features.push(self.documents as u32, &features)?;
            self.sketches.push(SketchRow::new(self.documents, Sketched::new(&features).as_ref())?)?;
            self.documents += 1;
        }
        Ok(())
    }
}

/// Searches a sample of some files, which hold so many documents.
pub(super) fn foretell(
    least: f64,
    profile: &Profile,
    files: &[&InputFile],
    inputs: &Inputs,
    documents: f64,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Foretold> {
    let step = Step::new(watch, "documents to be searched");
    step.add(0)?;
    let temporary = Temporary::new(options.temporary.as_deref(), &Unfinished::default(), watch)?;
    let room = Room { budget: Budget::new(options.memory), temporary, parts: None };
    let mut sample = Sample {
        profile,
        sketches: room.rows(),
        features: FeaturesWriter::new(&room)?,
        bytes: 0,
        documents: 0,
    };
    let looked_into = files.len().min(SEARCHED);
    let places = PLACES.div_ceil(looked_into.max(1)) as u64;
    for i in 0..looked_into {
        let file = files[i * files.len() / looked_into];
        // What the files before have not given, others may.
        let left = (SEARCHED - sample.documents).div_ceil(looked_into - i);
        let size = file.bytes.unwrap_or_default();
        let sections = if places > 1 { inputs.sections(file, size.div_ceil(places)) } else { Vec::new() };
        if sections.len() < 2 {
            sample.add(&inputs.of_files(vec![file.path.clone()]), left, &step)?;
            continue;
        }
        let most = left.div_ceil(sections.len());
        sections.iter().try_for_each(|section| sample.add(&inputs.of_section(section), most, &step))?;
    }
    drop(step);
    search(least, sample, documents, options, &room, watch)
}

fn search(
    least: f64,
    sample: Sample<'_>,
    documents: f64,
    options: &Options,
    room: &Room,
    watch: &dyn Watch,
) -> Result<Foretold> {
    let Sample { sketches, features, documents: sampled, .. } = sample;
    let (sketches, features) = (sketches.finish()?, features.finish()?);
    let question = Question::Similarity(least);
    let wanted = Wanted {
        least,
        recall: options.recall(),
        cluster_by: options.cluster_by(question),
        pairs: options.pairs,
    };
    let step = Step::new(watch, "documents numbered");
    let with_features = sketches.iter()?.filter(|row| row.as_ref().map_or(true, |row| row.features > 0));
    let keys = with_features.map(|row| row.map(|row| (row.digest(), row.number)));
    let sets = distinct(keys, &Ranks::Input, room, &step)?;
    drop(step);
    let out = Marks::new(sets.len());
    let (sketches, sets) = (&sketches, &sets);
    let search =
        Search { wanted, sketches, sets, out: &out, count: documents as usize, keeping: None, room, watch };
    let Searched { compared: (compared, unlike), crowds: (members, looked_at), .. } =
        search.run(false, |_| Ok(features))?;
    let times = (documents / sampled.max(1) as f64).max(1.0);
    let of_pairs = |pairs: u64| pairs as f64 * times * times;
    // A document that is similar to a kept one is compared with no more, and one of a crowd with few; unless all pairs are wanted.
    let is_linear = members > 0 && !wanted.wants_all();
    let of_documents = |pairs: u64| if is_linear { pairs as f64 * times } else { of_pairs(pairs) };
    let similar = compared - unlike;
    let similar = if wanted.wants_all() { of_pairs(similar) } else { similar as f64 * times };
    let candidates = of_documents(unlike) + similar;
    let seconds = candidates * COMPARED + members as f64 * times * ASKED + of_pairs(looked_at) * LOOKED_AT;
    let crowded = members as f64 * times;
    Ok(Foretold { sampled: sampled as u64, crowded, candidates, seconds })
}
