//! Which index, as the command line and the rows name it.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, Result, bail};
use serde::{Deserialize, Serialize};
use simstore::Codec;

/// One index with its settings; its name is what [`FromStr`] reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Spec {
    /// mih-rs with so many blocks.
    Mih { blocks: usize },
    /// gaoya's simhash index with so many blocks.
    Gaoya { blocks: usize },
    /// bk-tree.
    BkTree,
    /// All fingerprints, one after the other.
    Scan,
    /// A store.
    Simstore {
        plan: String,
        codec: Codec,
        block_size: Option<u32>,
        ids: bool,
        resident: bool,
        span: Option<u16>,
    },
}

impl Spec {
    /// What is compared if nothing is said.
    pub(crate) fn defaults(distance: u32) -> Vec<Spec> {
        let mut specs: Vec<Spec> = (2..=4).map(|blocks| Spec::Mih { blocks }).collect();
        // Its tables leave out one more block than the distance, see `index/gaoya.rs`.
        specs.extend([2, 3].map(|more| Spec::Gaoya { blocks: distance as usize + more }));
        specs.extend([Spec::BkTree, Spec::Scan]);
        let plans: &[&str] = match distance {
            ..=3 => &["probe-1", "probe-2", "probe-3", "paper-4"],
            _ => &["auto", "probe-2", "probe-3", "probe-4"],
        };
        let known = simstore::plan::names::<u64>(distance);
        for plan in plans.iter().filter(|plan| **plan == "auto" || known.iter().any(|name| name == *plan)) {
            for codec in [Codec::EliasFano, Codec::FirstDifference] {
                specs.push(Spec::Simstore {
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
        specs.push(Spec::Simstore {
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

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Mih { blocks } => write!(f, "mih-{blocks}"),
            Spec::Gaoya { blocks } => write!(f, "gaoya-{blocks}"),
            Spec::BkTree => f.write_str("bk-tree"),
            Spec::Scan => f.write_str("scan"),
            Spec::Simstore { plan, codec, block_size, ids, resident, span } => {
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

impl FromStr for Spec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Spec> {
        if let Some(blocks) = name.strip_prefix("mih-") {
            return Ok(Spec::Mih { blocks: blocks.parse()? });
        }
        if let Some(blocks) = name.strip_prefix("gaoya-") {
            return Ok(Spec::Gaoya { blocks: blocks.parse()? });
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
            return Ok(Spec::Simstore { plan, codec, block_size, ids, resident, span });
        }
        match name {
            "bk-tree" => Ok(Spec::BkTree),
            "scan" => Ok(Spec::Scan),
            _ => bail!(
                "there is no index `{name}`; expected mih-BLOCKS, gaoya-BLOCKS, bk-tree, scan or \
                 simstore:PLAN:CODEC[:BLOCK_SIZE][:span-COUNT][:ids][:resident]"
            ),
        }
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> String {
        spec.to_string()
    }
}

impl TryFrom<String> for Spec {
    type Error = Error;

    fn try_from(name: String) -> Result<Spec> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for distance in 1..=10 {
            for spec in Spec::defaults(distance) {
                assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
            }
        }
        let spec: Spec = "simstore:paper-4:gap:512:span-16:ids:resident".parse().unwrap();
        assert_eq!(spec.to_string(), "simstore:paper-4:gap:512:span-16:ids:resident");
        assert!("simstore:auto:zip".parse::<Spec>().is_err());
        assert!("faiss".parse::<Spec>().is_err());
    }
}
