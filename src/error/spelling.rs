//! Names that were misspelt.

/// The longest names that are compared, in bytes, and the most.
const LONGEST: usize = 64;
const MOST: usize = 10_000;

/// Which of the known names was meant, to be put behind a name that is none: ` (did you mean ...?)`; empty if none is near.
///
/// ```
/// use simstore::error::did_you_mean;
///
/// assert_eq!(did_you_mean("txet", ["id", "text"]), " (did you mean `text`?)");
/// assert_eq!(did_you_mean("Text", ["id", "text"]), " (did you mean `text`?)");
/// assert_eq!(did_you_mean("body", ["id", "text"]), "");
/// assert_eq!(did_you_mean("text", ["id", "text"]), "");
/// ```
pub fn did_you_mean<S: AsRef<str>>(name: &str, known: impl IntoIterator<Item = S>) -> String {
    if name.len() > LONGEST {
        return String::new();
    }
    let (given, name) = (name, name.to_lowercase());
    let most = name.chars().count() / 3;
    let errors = |known: &S| strsim::osa_distance(&name, &known.as_ref().to_lowercase());
    let is_other = |known: &S| known.as_ref() != given && known.as_ref().len() <= LONGEST;
    let known = known.into_iter().take(MOST).filter(is_other);
    let nearest = known.map(|known| (errors(&known), known)).min_by_key(|&(errors, _)| errors);
    match nearest {
        Some((errors, meant)) if errors <= most => {
            format!(" (did you mean `{}`?)", meant.as_ref().escape_debug())
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant() {
        let known = ["first", "longest", "largest", "text_id", "標題"];
        for (name, meant) in [
            ("frist", "first"),
            ("longst", "longest"),
            ("textid", "text_id"),
            ("LARGEST", "largest"),
            ("標标題", "標題"),
        ] {
            assert_eq!(did_you_mean(name, known), format!(" (did you mean `{meant}`?)"), "{name}");
        }
        for name in ["", "a", "ab", "url", &"text_id".repeat(20)] {
            assert_eq!(did_you_mean(name, known), "", "{name}");
        }
        assert_eq!(did_you_mean("text", Vec::<String>::new()), "");
    }
}
