//! Index specifications: which index to build, with which settings. They are parsed from names on the command line.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};
use serde::{Deserialize, Serialize};
use simstore::Codec;

/// An index with its settings. [`Display`](fmt::Display) writes the name that [`FromStr`] parses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum IndexSpec {
    /// The crate mih-rs with this number of blocks.
    Mih { blocks: usize },
    /// The simhash index of the crate gaoya with this number of blocks.
    Gaoya { blocks: usize },
    /// Hash maps from this number of blocks to fingerprints.
    BlockMaps { blocks: usize },
    /// The crate bk-tree.
    BkTree,
    /// Linear scan of all fingerprints.
    Scan,
    /// A simstore store.
    Simstore {
        plan: String,
        codec: Codec,
        block_size: Option<u32>,
        ids: bool,
        resident: bool,
        span: Option<u16>,
    },
}

impl IndexSpec {
    /// Returns the indexes that are compared by default.
    pub(crate) fn defaults(distance: u32) -> Vec<IndexSpec> {
        let mut specs: Vec<IndexSpec> = (2..=4).map(|blocks| IndexSpec::Mih { blocks }).collect();
        // gaoya needs at least `distance + 2` blocks (`index/gaoya.rs`).
        specs.extend([2, 3].map(|more| IndexSpec::Gaoya { blocks: distance as usize + more }));
        specs.push(IndexSpec::BlockMaps { blocks: distance as usize + 1 });
        specs.extend([IndexSpec::BkTree, IndexSpec::Scan]);
        let plans: &[&str] = match distance {
            ..=3 => &["probe-1", "probe-2", "probe-3", "paper-4"],
            _ => &["auto", "probe-2", "probe-3", "probe-4"],
        };
        let known = simstore::plan::names::<u64>(distance);
        for plan in plans.iter().filter(|plan| **plan == "auto" || known.iter().any(|name| name == *plan)) {
            for codec in [Codec::EliasFano, Codec::FirstDifference] {
                specs.push(IndexSpec::Simstore {
                    plan: (*plan).to_string(),
                    codec,
                    block_size: None,
                    ids: false,
                    resident: false,
                    span: None,
                });
            }
        }
        let plan = if distance <= 3 { "probe-2" } else { "auto" }.to_string();
        specs.push(IndexSpec::Simstore {
            plan,
            codec: Codec::EliasFano,
            block_size: None,
            ids: true,
            resident: false,
            span: None,
        });
        specs
    }
}

impl fmt::Display for IndexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexSpec::Mih { blocks } => write!(f, "mih-{blocks}"),
            IndexSpec::Gaoya { blocks } => write!(f, "gaoya-{blocks}"),
            IndexSpec::BlockMaps { blocks } => write!(f, "maps-{blocks}"),
            IndexSpec::BkTree => f.write_str("bk-tree"),
            IndexSpec::Scan => f.write_str("scan"),
            IndexSpec::Simstore { plan, codec, block_size, ids, resident, span } => {
                write!(f, "simstore:{plan}:{codec}")?;
                if let Some(bytes) = block_size {
                    write!(f, ":{bytes}")?;
                }
                if let Some(span) = span {
                    write!(f, ":span-{span}")?;
                }
                f.write_str(if *ids { ":ids" } else { "" })?;
                f.write_str(if *resident { ":resident" } else { "" })
            }
        }
    }
}

impl FromStr for IndexSpec {
    type Err = Error;

    fn from_str(name: &str) -> Result<IndexSpec> {
        if let Some(blocks) = name.strip_prefix("mih-") {
            return Ok(IndexSpec::Mih { blocks: blocks.parse()? });
        }
        if let Some(blocks) = name.strip_prefix("gaoya-") {
            return Ok(IndexSpec::Gaoya { blocks: blocks.parse()? });
        }
        if let Some(blocks) = name.strip_prefix("maps-") {
            return Ok(IndexSpec::BlockMaps { blocks: blocks.parse()? });
        }
        if let Some(settings) = name.strip_prefix("simstore:") {
            let mut settings = settings.split(':');
            let plan = settings.next().unwrap_or_default().to_string();
            let codec = settings.next().unwrap_or("first-difference").parse()?;
            let (mut block_size, mut ids, mut resident, mut span) = (None, false, false, None);
            for setting in settings {
                match setting {
                    "ids" => ids = true,
                    "resident" => resident = true,
                    setting => match setting.strip_prefix("span-") {
                        Some(count) => span = Some(count.parse()?),
                        None => block_size = Some(setting.parse()?),
                    },
                }
            }
            return Ok(IndexSpec::Simstore { plan, codec, block_size, ids, resident, span });
        }
        match name {
            "bk-tree" => Ok(IndexSpec::BkTree),
            "scan" => Ok(IndexSpec::Scan),
            _ => bail!(
                "there is no index `{name}`; expected mih-BLOCKS, gaoya-BLOCKS, maps-BLOCKS, bk-tree, scan or \
                 simstore:PLAN:CODEC[:BLOCK_SIZE][:span-COUNT][:ids][:resident]"
            ),
        }
    }
}

impl From<IndexSpec> for String {
    fn from(spec: IndexSpec) -> String {
        spec.to_string()
    }
}

impl TryFrom<String> for IndexSpec {
    type Error = Error;

    fn try_from(name: String) -> Result<IndexSpec> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for distance in 1..=10 {
            for spec in IndexSpec::defaults(distance) {
                assert_eq!(spec.to_string().parse::<IndexSpec>().unwrap(), spec);
            }
        }
        let spec: IndexSpec = "simstore:paper-4:gap:512:span-16:ids:resident".parse().unwrap();
        assert_eq!(spec.to_string(), "simstore:paper-4:gap:512:span-16:ids:resident");
        assert!("simstore:auto:zip".parse::<IndexSpec>().is_err());
        assert!("faiss".parse::<IndexSpec>().is_err());
    }
}
