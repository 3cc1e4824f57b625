//! What is told of a run in the end, to people and to machines: the same in all interfaces.

use std::fmt;

use serde::Serialize;

use super::options::{Options, Question};
use super::preference::Keep;
use super::totals::{Largest, Spilled, Totals};
use crate::numbers::{bytes, count_of, grouped, share};

/// The numbers of a run and how long it took. It is written as lines for people, options named as the library has them, and
/// serialized as one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The numbers.
    #[serde(flatten)]
    pub totals: Totals,
    /// Seconds that the run took, to three decimals.
    pub seconds: f64,
    #[serde(skip)]
    question: Question,
    /// The store that is added to, if there are several.
    #[serde(skip)]
    first_of_stores: Option<String>,
    #[serde(skip)]
    keeps_some: bool,
}

impl Summary {
    /// Of a run with these options that was asked this.
    pub fn new(totals: Totals, question: Question, options: &Options, seconds: f64) -> Summary {
        let first_of_stores = match &options.against[..] {
            [first, _, ..] => Some(first.display().to_string()),
            _ => None,
        };
        let seconds = (seconds * 1000.0).round() / 1000.0;
        Summary { totals, seconds, question, first_of_stores, keeps_some: options.keep != Keep::None }
    }

    /// Whether a large cluster holds documents that are far from what was asked for.
    fn has_chains(&self) -> bool {
        let is_far = |cluster: &Largest| match (self.question, cluster.least_similar) {
            (Question::Similarity(least), Some(similarity)) => f64::from(similarity) < least - 1e-6,
            (Question::Distance(distance), _) => {
                cluster.farthest.is_none_or(|bits| bits > 3 * distance.max(1))
            }
            _ => false,
        };
        self.totals.largest.iter().any(is_far)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        let text = match totals.text_bytes {
            0 => String::new(),
            count => format!(" ({} of text)", bytes(count)),
        };
        let (distinct, near) = match self.question {
            Question::Distance(distance) => {
                ("distinct fingerprint", format!("within {}", count_of(distance.into(), "bit")))
            }
            Question::Similarity(least) => ("distinct text", format!("similarity {least} and more")),
        };
        write!(
            f,
            "{}{text}, {}, {near}, {:.1} s",
            count_of(totals.documents, "document"),
            count_of(totals.fingerprints as u64, distinct),
            self.seconds
        )?;
        write!(
            f,
            "\n{} of {}, {} ({:.1}%), {} left",
            count_of(totals.clusters as u64, "cluster"),
            count_of(totals.clustered as u64, "document"),
            count_of(totals.duplicates as u64, "duplicate"),
            100.0 * totals.duplicates as f64 / totals.documents.max(1) as f64,
            grouped(totals.kept as u64)
        )?;
        if totals.other_names > 0 {
            write!(
                f,
                "\n{} of what is read under another, passed over",
                count_of(totals.other_names, "name")
            )?;
        }
        if totals.passed_over > 0 {
            write!(f, "\n{} or links passed over", count_of(totals.passed_over, "file"))?;
        }
        if let Some(stored) = totals.stored {
            let stores = if self.first_of_stores.is_some() { "stores" } else { "store" };
            write!(f, "\n{} near what was in the {stores}", count_of(stored as u64, "document"))?;
        }
        if let (Some(estimated @ 1..), Some(standard_error)) = (totals.estimated, totals.standard_error) {
            write!(
                f,
                "\n{} of these by an estimate of the similarity, with a standard error of at most {standard_error:.3}",
                count_of(estimated, "document")
            )?;
        }
        if let Some(added) = totals.added {
            let store = self.first_of_stores.as_deref().unwrap_or("the store");
            write!(f, "\n{} added to {store}", count_of(added, "document"))?;
        }
        if let (Some(compared), Some(unlike)) = (totals.compared, totals.unlike) {
            write!(f, "\n{} of texts compared, {} not alike", count_of(compared, "pair"), grouped(unlike))?;
        }
        if let Some(Spilled { written, most }) = totals.spilled {
            write!(
                f,
                "\ntoo much for the memory: {} written to temporary files, at most {} at a time",
                bytes(written),
                bytes(most)
            )?;
        }
        for Largest { size, farthest, least_similar } in &totals.largest {
            write!(f, "\na cluster of {}: ", count_of(*size as u64, "document"))?;
            match (least_similar, farthest) {
                (Some(similarity), _) => {
                    write!(f, "all {} similar or more to what is kept", share(*similarity))?;
                }
                (None, Some(bits)) => write!(f, "the farthest two {bits} bits apart")?,
                (None, None) => f.write_str("too many different fingerprints to compare all")?,
            }
        }
        if self.keeps_some && self.has_chains() {
            f.write_str(
                "\nchains connect documents that are not alike: option `cluster_by` stars keeps them apart",
            )?;
        }
        Ok(())
    }
}
