//! What a person is told in the end, and a machine.

use serde::Serialize;
use simstore_corpus::dedup::{Keep, Largest, Question, Spilled, Totals};

use super::{DedupArgs, print};
use crate::inputs::count_of;
use crate::numbers::{bytes, grouped, rounded};
use crate::progress::Progress;

#[derive(Serialize)]
pub(super) struct Summary {
    #[serde(flatten)]
    totals: Totals,
    seconds: f64,
}

impl Summary {
    pub(super) fn new(totals: Totals, seconds: f64) -> Summary {
        Summary { totals, seconds: rounded(seconds) }
    }

    /// Says it to a person.
    pub(super) fn say(&self, question: Question, args: &DedupArgs, progress: &Progress) {
        let totals = &self.totals;
        // The first is the one that is added to.
        let (in_stores, first) = match &args.against[..] {
            [first, _, ..] => ("in the stores", first.display().to_string()),
            _ => ("in the store", "the store".to_owned()),
        };
        let share = |part: usize| 100.0 * part as f64 / (totals.documents.max(1)) as f64;
        let text = if totals.text_bytes > 0 {
            format!(" ({} of text)", bytes(totals.text_bytes))
        } else {
            String::new()
        };
        let (distinct, near) = match question {
            Question::Distance(distance) => {
                ("distinct fingerprint", format!("within {}", count_of(distance.into(), "bit")))
            }
            Question::Similarity(least) => ("distinct text", format!("similarity {least} and more")),
        };
        progress.say(&format!(
            "{}{text}, {}, {near}, {:.1} s",
            count_of(totals.documents, "document"),
            count_of(totals.fingerprints as u64, distinct),
            self.seconds
        ));
        progress.say(&format!(
            "{} of {}, {} ({:.1}%), {} left",
            count_of(totals.clusters as u64, "cluster"),
            count_of(totals.clustered as u64, "document"),
            count_of(totals.duplicates as u64, "duplicate"),
            share(totals.duplicates),
            grouped(totals.kept as u64)
        ));
        if let Some(stored) = totals.stored {
            progress.say(&format!("{} near what was {in_stores}", count_of(stored as u64, "document")));
        }
        if let (Some(estimated @ 1..), Some(standard_error)) = (totals.estimated, totals.standard_error) {
            progress.say(&format!(
                "{} of these by an estimate of the similarity, with a standard error of at most {:.3}",
                count_of(estimated, "document"),
                standard_error
            ));
        }
        if let Some(added) = totals.added {
            progress.say(&format!("{} added to {first}", count_of(added, "document")));
        }
        if let (Some(compared), Some(unlike)) = (totals.compared, totals.unlike) {
            progress.say(&format!(
                "{} of texts compared, {} not alike",
                count_of(compared, "pair"),
                grouped(unlike)
            ));
        }
        if let Some(Spilled { written, most }) = totals.spilled {
            progress.say(&format!(
                "too much for the memory: {} written to temporary files, at most {} at a time",
                bytes(written),
                bytes(most)
            ));
        }
        for Largest { size, farthest, least_similar } in &totals.largest {
            let apart = match (least_similar, farthest) {
                (Some(similarity), _) => {
                    format!("all {} similar or more to what is kept", print::share(*similarity))
                }
                (None, Some(bits)) => format!("the farthest two {bits} bits apart"),
                (None, None) => "too many different fingerprints to compare all".to_owned(),
            };
            progress.say(&format!("a cluster of {}: {apart}", count_of(*size as u64, "document")));
        }
        let is_far = |cluster: &Largest| match (question, cluster.least_similar) {
            (Question::Similarity(least), Some(similarity)) => f64::from(similarity) < least - 1e-6,
            (Question::Distance(distance), _) => {
                cluster.farthest.is_none_or(|bits| bits > 3 * distance.max(1))
            }
            _ => false,
        };
        if totals.largest.iter().any(is_far) && args.keep != Keep::None {
            progress
                .say("chains connect documents that are not alike: `--cluster-by stars` keeps them apart");
        }
    }
}
