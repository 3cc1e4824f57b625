//! Suggestions for misspelt names.

/// Maximum length of names to compare, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Maximum number of known names to compare.
const MAX_NAMES: usize = 10_000;

/// Suggests the known name that is most similar to an unknown one: ` (did you mean ...?)`, to append to an
/// error message. Returns an empty string if no known name is similar, that is, if more than a third of the
/// characters differ.
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
    if name.len() > MAX_NAME_BYTES {
        return String::new();
    }
    let (given, name) = (name, name.to_lowercase());
    let most = name.chars().count() / 3;
    let errors = |known: &S| strsim::osa_distance(&name, &known.as_ref().to_lowercase());
    let is_other = |known: &S| known.as_ref() != given && known.as_ref().len() <= MAX_NAME_BYTES;
    let known = known.into_iter().take(MAX_NAMES).filter(is_other);
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
