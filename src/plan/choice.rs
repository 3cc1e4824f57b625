//! Which plan a segment gets.

use std::fmt;
use std::str::FromStr;

use super::catalogue::Name;
use super::{Plan, Workload, choose};
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;

/// Which plan a segment gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanChoice {
    /// The one that [`choose`] takes for the segment's size.
    #[default]
    Auto,
    /// One of [`names`](super::names); another is refused when a store is made.
    Named(String),
}

const AUTO: &str = "auto";

impl PlanChoice {
    /// The choice in a manifest, which may come from a version that knows more names.
    pub(crate) fn of_text(text: String) -> PlanChoice {
        if text == AUTO { PlanChoice::Auto } else { PlanChoice::Named(text) }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            PlanChoice::Auto => AUTO,
            PlanChoice::Named(name) => name,
        }
    }

    /// Refuses what no segment can have for a distance, before there is one.
    ///
    /// # Errors
    /// As [`Plan::named`].
    pub(crate) fn check<F: Fingerprint>(&self, distance: u32) -> Result<()> {
        let name = match self {
            // There is a plan for each distance that there can be.
            PlanChoice::Auto => "scan",
            PlanChoice::Named(name) => name,
        };
        Plan::<F>::named(name, distance).map(|_| ())
    }

    /// This choice, or for a named plan that does not exist for a distance the automatic one.
    pub(crate) fn at<F: Fingerprint>(&self, distance: u32) -> PlanChoice {
        if self.check::<F>(distance).is_ok() { self.clone() } else { PlanChoice::Auto }
    }

    /// The plan of a segment.
    ///
    /// # Errors
    /// As [`Plan::named`].
    pub(crate) fn plan<F: Fingerprint>(&self, distance: u32, workload: &Workload) -> Result<Plan<F>> {
        match self {
            PlanChoice::Auto => choose(distance, workload),
            PlanChoice::Named(name) => Plan::named(name, distance),
        }
    }
}

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PlanChoice {
    type Err = Error;

    /// Refuses what is no plan's name at any width and distance.
    fn from_str(text: &str) -> Result<PlanChoice> {
        if text != AUTO && Name::parse(text).is_none() {
            return Err(Error::BadArgument(format!(
                "unknown plan `{}`; expected auto, scan, probe-M, paper-N, cover-N or mixed-N-P (N tables, P prefix bits; the choice \
                 depends on the distance, see `simstore plan`)",
                excerpt(text)
            )));
        }
        Ok(PlanChoice::of_text(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_plans_are_choices_and_nothing_else_is() {
        assert_eq!("auto".parse::<PlanChoice>().unwrap(), PlanChoice::Auto);
        for name in (0..=16).flat_map(super::super::names::<u64>) {
            let choice = name.parse::<PlanChoice>().unwrap();
            assert_eq!((&choice, choice.to_string()), (&PlanChoice::Named(name.clone()), name));
        }
        for text in ["", "Auto", "nope", "probe", "probe-x", "probe-0", "probe-65", "mixed-3", "paper-4-5"] {
            let error = text.parse::<PlanChoice>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("unknown plan `{text}`; ")), "{error}");
        }
    }

    #[test]
    fn a_choice_is_checked_for_width_and_distance() {
        let cover = PlanChoice::Named("cover-11".to_string());
        cover.check::<u64>(3).unwrap();
        assert!(matches!(cover.check::<u64>(4), Err(Error::IncompletePlan { .. })));
        assert_eq!((cover.at::<u64>(3), cover.at::<u64>(4)), (cover.clone(), PlanChoice::Auto));
        PlanChoice::Auto.check::<u64>(16).unwrap();
        assert!(PlanChoice::Auto.check::<u64>(17).is_err());
        PlanChoice::Auto.check::<u128>(17).unwrap();
        assert!(PlanChoice::of_text("of another version".to_string()).check::<u64>(3).is_err());
    }
}
