//! The summary of a run, for people and for machines: the same in all interfaces.

use std::fmt;

use serde::Serialize;

use super::documents::Keep;
use super::options::Options;
use super::question::Question;
use super::stages::Boilerplate;
use super::totals::{Largest, Spilled, Totals};
use simstore_io::numbers::{bytes, count_of, grouped, share};

/// The numbers of a run and how long it took. It is written as lines for people, options named as the library has them, and
/// serialized as one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The numbers.
    #[serde(flatten)]
    pub totals: Totals,
    /// Seconds that the run took, to three decimals.
    pub seconds: f64,
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// The store that is added to, if several were named.
    #[serde(skip)]
    first_of_stores: Option<String>,
    #[serde(skip)]
    keeps_some: bool,
    /// Whether only equal texts are duplicates.
    #[serde(skip)]
    is_exact: bool,
}

impl Summary {
    /// Of a run with these options that was asked this.
    pub fn new(totals: Totals, question: Question, options: &Options, seconds: f64) -> Summary {
        let first_of_stores = match &options.against[..] {
            [first, _, ..] => Some(first.display().to_string()),
            _ => None,
        };
        let seconds = (seconds * 1000.0).round() / 1000.0;
        Summary {
            totals,
            seconds,
            question,
            first_of_stores,
            keeps_some: options.keep != Keep::None,
            is_exact: options.compare.is_exact(),
        }
    }

    /// Whether documents of a large cluster are much farther apart than the threshold.
    fn has_chains(&self) -> bool {
        let is_far = |cluster: &Largest| match (self.question, cluster.least_similar) {
            (Question::Similarity(least), Some(similarity)) => similarity < least,
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
            Question::Similarity(_) if self.is_exact => ("distinct text", "equal texts only".to_owned()),
            Question::Similarity(least) => ("distinct text", format!("similarity >= {least}")),
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
            "\n{} in {}; {} ({:.1}%), {} kept",
            count_of(totals.clustered as u64, "document"),
            count_of(totals.clusters as u64, "cluster"),
            count_of(totals.duplicates as u64, "duplicate"),
            100.0 * totals.duplicates as f64 / totals.documents.max(1) as f64,
            grouped(totals.kept as u64)
        )?;
        self.write_more(f)?;
        for Largest { size, farthest, least_similar, estimated } in &totals.largest {
            write!(f, "\ncluster of {}: ", grouped(*size as u64))?;
            match (least_similar, farthest) {
                (Some(similarity), _) if *estimated => {
                    write!(f, "lowest estimated similarity to the representative {}", share(*similarity))?;
                }
                (Some(similarity), _) => {
                    write!(f, "lowest similarity to the representative {}", share(*similarity))?;
                }
                (None, Some(bits)) => {
                    write!(f, "largest distance {}", count_of((*bits).into(), "bit"))?;
                }
                (None, None) => f.write_str("too many fingerprints to compare all pairs")?,
            }
        }
        if self.keeps_some && self.has_chains() {
            f.write_str(
                "\nsome clusters are chains: they connect documents that are not near each other; option `cluster_by` stars separates \
                 them",
            )?;
        }
        Ok(())
    }
}

impl Summary {
    /// Lines that only some runs have.
    fn write_more(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        if totals.other_names > 0 {
            let names = count_of(totals.other_names, "other name");
            write!(f, "\nskipped {names} of the same files")?;
        }
        if totals.passed_over > 0 {
            let links = if totals.passed_over == 1 { "link" } else { "links" };
            write!(f, "\nskipped {} or {links}", count_of(totals.passed_over, "file"))?;
        }
        if let Some(stored) = totals.stored {
            let stores = if self.first_of_stores.is_some() { "stores" } else { "store" };
            let are = if stored == 1 { "is a near-duplicate" } else { "are near-duplicates" };
            write!(f, "\n{} {are} of documents in the {stores}", count_of(stored as u64, "document"))?;
        }
        if let (Some(estimated @ 1..), Some(standard_error)) = (totals.estimated, totals.standard_error) {
            write!(
                f,
                "\n{} of these by an estimated similarity (standard error at most {:.3})",
                grouped(estimated),
                (standard_error * 1000.0).ceil() / 1000.0
            )?;
        }
        if let Some(added) = totals.added {
            let store = self.first_of_stores.as_deref().unwrap_or("the store");
            write!(f, "\n{} added to {store}", count_of(added, "document"))?;
        }
        if let (Some(compared), Some(unlike)) = (totals.compared, totals.unlike) {
            write!(
                f,
                "\n{} of texts compared; {} below the threshold",
                count_of(compared, "pair"),
                grouped(unlike)
            )?;
        }
        let boilerplate = totals.boilerplate.filter(|boilerplate| boilerplate.is_worth_telling());
        if let Some(Boilerplate { looked_at, mostly }) = boilerplate {
            write!(
                f,
                "\nwarning: {} of {} checked match the kept document mainly in boilerplate (text in 9 of 10 documents); for web pages \
                 try option `verify_profile` main-text",
                grouped(mostly as u64),
                count_of(looked_at as u64, "duplicate")
            )?;
        }
        if let Some(Spilled { written, most }) = totals.spilled {
            write!(
                f,
                "\ncompared on disk: wrote {} of temporary files, at most {} at one time",
                bytes(written),
                bytes(most)
            )?;
        }
        Ok(())
    }
}
