//! What the search of a sample foretells of the search of all: how many candidates there will be, and how long they take.
//!
//! Documents of one template that are just less similar than was asked for are all candidates of one another, and none is a
//! duplicate: their number grows with the square of the number of documents. So does that of the candidates in a sample.

use std::collections::HashSet;

use simstore::Result;
use simstore_text::Sketcher;

use super::Keep;
use super::feature_sets::FeatureSets;
use super::names::Names;
use super::options::Options;
use super::preference::{Preference, Values};
use super::question::Question;
use super::similar::partners::most_pairs;
use super::similar::{Similar, Wanted, small};
use super::sketches::Sketches;
use crate::output::Unfinished;
use crate::spill::Temporary;
use crate::watch::Step;
use crate::{InputFile, Inputs, Watch};

/// Documents that are searched, at most: all of them may be candidates of one another. And bytes of their texts.
const SEARCHED: usize = 1024;
const SEARCHED_BYTES: usize = 64 << 20;
/// Places of a file that is large or alone, evenly spread, where it can be read from the middle.
const PLACES: usize = 64;

/// What it takes to compare two texts by their shingles, in seconds on one core; and two small ones, whose shingles are in memory.
const COMPARED: f64 = 2e-6;
const SMALL_COMPARED: f64 = 0.4e-6;

/// What is foretold of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Foretold {
    /// Documents that were searched.
    pub(super) sampled: u64,
    /// Candidates among all documents.
    pub(super) candidates: f64,
    /// What comparing them takes, in seconds on one core.
    pub(super) seconds: f64,
}

/// The documents that are searched.
struct Sample<'a> {
    sketcher: &'a Sketcher,
    sketches: Sketches,
    features: FeatureSets,
    bytes: usize,
    documents: usize,
}

impl Sample<'_> {
    fn is_full(&self) -> bool {
        self.documents == SEARCHED || self.bytes > SEARCHED_BYTES
    }

    /// Takes the first documents of some inputs.
    fn add(&mut self, inputs: &Inputs, most: usize, largest: u32, step: &Step<'_>) -> Result<()> {
        let options = inputs.options();
        for record in inputs.records().take(most) {
            if self.is_full() {
                break;
            }
            step.add(1)?;
            // What is malformed was told before.
            let Ok(document) = record.and_then(|record| record.document(options)) else { continue };
            self.bytes += document.text.len();
            let mut sketched = self.sketcher.sketch(&document.text);
            if let Some(sketched) = &mut sketched {
                self.features.push(self.documents, sketched.members.as_deref().unwrap_or_default())?;
                sketched.members = sketched.members.take().filter(|members| members.len() as u32 <= largest);
            }
            self.sketches.push(sketched.as_ref());
            self.documents += 1;
        }
        Ok(())
    }
}

/// Searches a sample of some files, which hold so many documents. The sketcher keeps the features of all.
pub(super) fn foretell(
    least: f64,
    sketcher: &Sketcher,
    files: &[&InputFile],
    inputs: &Inputs,
    documents: f64,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Foretold> {
    let step = Step::new(watch, "documents to be searched");
    step.add(0)?;
    let temporary = Temporary::new(options.temporary.as_deref(), &Unfinished::default(), watch)?;
    let mut sample = Sample {
        sketcher,
        sketches: Sketches::new(sketcher.sketches()),
        features: FeatureSets::new(&temporary)?,
        bytes: 0,
        documents: 0,
    };
    let looked_into = files.len().min(SEARCHED);
    let places = PLACES.div_ceil(looked_into.max(1)) as u64;
    let largest = small::largest(least);
    for i in 0..looked_into {
        let file = files[i * files.len() / looked_into];
        // What the files before have not given, others may.
        let left = (SEARCHED - sample.documents).div_ceil(looked_into - i);
        let size = file.bytes.unwrap_or_default();
        let sections = if places > 1 { inputs.sections(file, size.div_ceil(places)) } else { Vec::new() };
        if sections.len() < 2 {
            sample.add(&inputs.of_files(vec![file.path.clone()]), left, largest, &step)?;
            continue;
        }
        let most = left.div_ceil(sections.len());
        sections
            .iter()
            .try_for_each(|section| sample.add(&inputs.of_section(section), most, largest, &step))?;
    }
    drop(step);
    search(least, sample, documents, options, watch)
}

fn search(
    least: f64,
    sample: Sample<'_>,
    documents: f64,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Foretold> {
    let Sample { sketches, features, documents: sampled, .. } = sample;
    let question = Question::Similarity(least);
    let wanted = Wanted {
        least,
        recall: options.recall(),
        cluster_by: options.cluster_by(question),
        pairs: options.pairs,
    };
    let (keep, values, names) = (Keep::First, Values::None, Names::default());
    let preference = Preference { keep: &keep, values: &values, names: &names, told: None };
    let (found, _) = Similar::find::<u64>(
        wanted,
        &sketches,
        &HashSet::new(),
        &preference,
        Some(documents as usize),
        |_| Ok(features),
        watch,
    )?;
    let times = (documents / sampled.max(1) as f64).max(1.0);
    let of_pairs = |pairs: u64| pairs as f64 * times * times;
    // Pairs that are not similar come of crowds, and so do similar ones if all are wanted. Else a document that is similar to a
    // kept one is compared with no more, and of crowds that are all alike some pairs are left out.
    let (similar, (small, small_similar)) = (found.compared - found.unlike, found.small);
    let (similar, small_similar) = if wanted.wants_all() {
        (of_pairs(similar), of_pairs(small_similar))
    } else {
        (similar as f64 * times, of_pairs(small_similar).min(most_pairs(documents)))
    };
    let texts = of_pairs(found.unlike) + similar;
    let small = of_pairs(small - found.small.1) + small_similar;
    Ok(Foretold {
        sampled: sampled as u64,
        candidates: texts + small,
        seconds: texts * COMPARED + small * SMALL_COMPARED,
    })
}
