//! Setting of a store that determines the plan of the tables in each segment.

use std::fmt;
use std::str::FromStr;

use super::catalogue::PlanName;
use super::{Plan, Workload, choose};
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;

/// Setting of a store that determines the [`Plan`] of the tables in each segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanChoice {
    /// Each segment gets the plan that [`choose`] returns for its [`Workload`]. So the plan depends on the number of
    /// fingerprints in the segment.
    #[default]
    Auto,
    /// The plan of this name, see [`names`](super::names). Creating a store fails if the name is unknown.
    Named(String),
}

const AUTO: &str = "auto";

impl PlanChoice {
    /// Parses the text of this setting in a manifest. Any name is accepted, since a newer version may have more
    /// plans.
    pub(crate) fn from_text(text: String) -> PlanChoice {
        if text == AUTO { PlanChoice::Auto } else { PlanChoice::Named(text) }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            PlanChoice::Auto => AUTO,
            PlanChoice::Named(name) => name,
        }
    }

    /// Checks that a plan exists for this setting and distance. So an invalid setting is found when the store is
    /// created, and not when its first segment is written.
    ///
    /// # Errors
    /// The errors of [`Plan::named`].
    pub(crate) fn validate<F: Fingerprint>(&self, distance: u32) -> Result<()> {
        let name = match self {
            // `scan` exists for every valid distance.
            PlanChoice::Auto => "scan",
            PlanChoice::Named(name) => name,
        };
        Plan::<F>::named(name, distance).map(|_| ())
    }

    /// Returns this setting, or [`PlanChoice::Auto`] if this setting names a plan that does not exist for the
    /// distance.
    pub(crate) fn or_auto<F: Fingerprint>(&self, distance: u32) -> PlanChoice {
        if self.validate::<F>(distance).is_ok() { self.clone() } else { PlanChoice::Auto }
    }

    /// Returns the plan that a segment gets by this setting. `workload` is the workload of the segment.
    ///
    /// # Errors
    /// The errors of [`Plan::named`].
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

    /// Parses `auto` or the name of a plan.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `text` is neither `auto` nor has the form of a plan's name.
    fn from_str(text: &str) -> Result<PlanChoice> {
        if text != AUTO && PlanName::parse(text).is_none() {
            return Err(Error::BadArgument(format!(
                "unknown plan `{}`; expected auto, scan, probe-M, paper-N, cover-N or mixed-N-P (N tables, P prefix bits; the choice \
                 depends on the distance, see `simstore plan`)",
                excerpt(text)
            )));
        }
        Ok(PlanChoice::from_text(text.to_string()))
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
        cover.validate::<u64>(3).unwrap();
        assert!(matches!(cover.validate::<u64>(4), Err(Error::IncompletePlan { .. })));
        assert_eq!((cover.or_auto::<u64>(3), cover.or_auto::<u64>(4)), (cover.clone(), PlanChoice::Auto));
        PlanChoice::Auto.validate::<u64>(16).unwrap();
        assert!(PlanChoice::Auto.validate::<u64>(17).is_err());
        PlanChoice::Auto.validate::<u128>(17).unwrap();
        assert!(PlanChoice::from_text("of another version".to_string()).validate::<u64>(3).is_err());
    }
}
