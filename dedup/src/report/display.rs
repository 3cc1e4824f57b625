//! The summary of a run as text for users.

use std::fmt;

use simstore_io::numbers::{format_bytes, format_count, format_count_of, format_similarity};

use crate::config::criterion::Criterion;
use crate::pipeline::boilerplate::Boilerplate;
use crate::report::summary::{ClusterSummary, SpillSummary, Summary};

impl Summary {
    /// Whether some documents of one of the largest clusters are connected only by a chain of near-duplicates. If
    /// documents are compared by similarity, this is so if a document is less similar to its representative than
    /// the threshold. If they are compared by distance, this is so if the distance of two documents is more than
    /// three times the threshold, or if the cluster is too large to compute all distances.
    fn has_chains(&self) -> bool {
        let is_far = |cluster: &ClusterSummary| match (self.criterion, cluster.min_similarity) {
            (Criterion::Similarity(least), Some(similarity)) => similarity < least,
            (Criterion::Distance(distance), _) => {
                cluster.max_distance.is_none_or(|bits| bits > 3 * distance.max(1))
            }
            _ => false,
        };
        self.largest.iter().any(is_far)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.text_bytes {
            0 => String::new(),
            count => format!(" ({} of text)", format_bytes(count)),
        };
        let (distinct, near) = match self.criterion {
            Criterion::Distance(distance) => {
                ("distinct fingerprint", format!("within {}", format_count_of(distance.into(), "bit")))
            }
            Criterion::Similarity(_) if self.is_exact => ("distinct text", "equal texts only".to_owned()),
            Criterion::Similarity(least) => ("distinct text", format!("similarity >= {least}")),
        };
        write!(
            f,
            "{}{text}, {}, {near}, {:.1} s",
            format_count_of(self.documents, "document"),
            format_count_of(self.fingerprints as u64, distinct),
            self.seconds
        )?;
        write!(
            f,
            "\n{} in {}; {} ({:.1}%), {} kept",
            format_count_of(self.clustered as u64, "document"),
            format_count_of(self.clusters as u64, "cluster"),
            format_count_of(self.duplicates as u64, "duplicate"),
            100.0 * self.duplicates as f64 / self.documents.max(1) as f64,
            format_count(self.kept as u64)
        )?;
        self.write_more(f)?;
        for ClusterSummary {
            size,
            max_distance: farthest,
            min_similarity: least_similar,
            is_estimated: estimated,
        } in &self.largest
        {
            write!(f, "\ncluster of {}: ", format_count(*size as u64))?;
            match (least_similar, farthest) {
                (Some(similarity), _) if *estimated => {
                    write!(
                        f,
                        "lowest estimated similarity to the representative {}",
                        format_similarity(*similarity)
                    )?;
                }
                (Some(similarity), _) => {
                    write!(f, "lowest similarity to the representative {}", format_similarity(*similarity))?;
                }
                (None, Some(bits)) => {
                    write!(f, "largest distance {}", format_count_of((*bits).into(), "bit"))?;
                }
                (None, None) => f.write_str("too many fingerprints to compare all pairs")?,
            }
        }
        if !self.keeps_none && self.has_chains() {
            f.write_str(
                "\nsome clusters are chains: they connect documents that are not near each other; option `cluster_by` stars separates \
                 them",
            )?;
        }
        Ok(())
    }
}

impl Summary {
    /// Writes the lines that only some summaries have, such as the number of added documents.
    fn write_more(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.duplicate_paths > 0 {
            let names = format_count_of(self.duplicate_paths, "other name");
            write!(f, "\nskipped {names} of the same files")?;
        }
        if self.skipped_files > 0 {
            let links = if self.skipped_files == 1 { "link" } else { "links" };
            write!(f, "\nskipped {} or {links}", format_count_of(self.skipped_files, "file"))?;
        }
        if let Some(stored) = self.stored {
            let stores = if self.first_of_stores.is_some() { "stores" } else { "store" };
            let are = if stored == 1 { "is a near-duplicate" } else { "are near-duplicates" };
            write!(f, "\n{} {are} of documents in the {stores}", format_count_of(stored as u64, "document"))?;
        }
        if let (Some(estimated @ 1..), Some(standard_error)) = (self.estimated, self.standard_error) {
            write!(
                f,
                "\n{} of these by an estimated similarity (standard error at most {:.3})",
                format_count(estimated),
                (standard_error * 1000.0).ceil() / 1000.0
            )?;
        }
        if let Some(added) = self.added {
            let store = self.first_of_stores.as_deref().unwrap_or("the store");
            write!(f, "\n{} added to {store}", format_count_of(added, "document"))?;
        }
        if let (Some(verified), Some(rejected)) = (self.verified, self.rejected) {
            write!(
                f,
                "\n{} of texts compared; {} below the threshold",
                format_count_of(verified, "pair"),
                format_count(rejected)
            )?;
        }
        let boilerplate = self.boilerplate.filter(|boilerplate| boilerplate.is_worth_reporting());
        if let Some(Boilerplate { examined, mostly_boilerplate }) = boilerplate {
            write!(
                f,
                "\nwarning: {} of {} checked match the kept document mainly in boilerplate (text in 9 of 10 documents); for web pages \
                 try option `verify_profile` main-text",
                format_count(mostly_boilerplate as u64),
                format_count_of(examined as u64, "duplicate")
            )?;
        }
        if let Some(SpillSummary { written_bytes, peak_bytes }) = self.spilled {
            write!(
                f,
                "\ncompared on disk: wrote {} of temporary files, at most {} at one time",
                format_bytes(written_bytes),
                format_bytes(peak_bytes)
            )?;
        }
        Ok(())
    }
}
