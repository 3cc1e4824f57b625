//! Tests that a profile gives the same fingerprints in every version, as is necessary because stores keep fingerprints for years.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use simstore::Fingerprint;
use xxhash_rust::xxh3::xxh3_64;

use simstore_text::{DocumentFrequencies, Profile, Resource, Resources, Simhash, simhash};

/// Returns the dictionary, IDF table and stop words that profiles in the golden file `tests/data/profiles.tsv` use.
fn resources() -> Resources {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        Some(Resource::new(path, text))
    };
    Resources { dictionary: read("words.txt"), idf: read("idf.tsv"), stop_words: read("stop-words.txt") }
}

/// Creates the profile with this name. Passes only the resource files that the name mentions.
fn profile(name: &str) -> Profile {
    let mut resources = resources();
    for (key, file) in [
        ("dictionary=", &mut resources.dictionary),
        (",idf=", &mut resources.idf),
        ("stop-words=", &mut resources.stop_words),
    ] {
        if !name.contains(key) {
            *file = None;
        }
    }
    Profile::with_resources(name, &resources).unwrap()
}

/// Profile names that cover every tokenizer, option and weighting.
const NAMES: [&str; 27] = [
    "auto",
    "auto,plain-text",
    "by-script,plain-text,simplified",
    "auto,search,simplified,only-han",
    "auto,weights=levels",
    "words-2",
    "words-1,keep-front-matter",
    "words-3,plain-text",
    "words-2,html-text,weights=none",
    "words-2,main-text,weights=levels",
    "words-2,no-nfkc,keep-case",
    "words-3,segmented,plain-text,simplified,weights=none",
    "code-7",
    "code-2,weights=none",
    "chars-4",
    "chars-2,strip-digits,weights=none",
    "jieba-5",
    "jieba-20,search",
    "jieba-5,weights=none",
    "jieba-10,plain-text,weights=levels",
    "phrases",
    "phrases,html-text,weights=levels",
    "sentences-3",
    "tokens",
    "tokens,keep-case,weights=none",
    "features",
    "features,weights=levels",
];

/// Fingerprints equal the values in the golden file. If the update of a dependency makes this test fail, the update would change
/// the fingerprints of all users' documents.
#[test]
fn golden() {
    let mut rows = 0;
    for row in include_str!("data/profiles.tsv").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let [text, name, hex64, hex128, features] = fields[..] else { panic!("{row}") };
        let text = unescape(text);
        let named = profile(name);
        assert_eq!(named.to_string(), name);
        let features = features.parse().unwrap();
        let expected = Simhash { fingerprint: u64::parse_hex(hex64).unwrap(), features };
        assert_eq!(named.fingerprint(&text), Some(expected), "{row}");
        let expected = Simhash { fingerprint: u128::parse_hex(hex128).unwrap(), features };
        assert_eq!(named.fingerprint(&text), Some(expected), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 181);
}

/// Undoes `str::escape_debug` for a text of the golden file.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        plain.push_str(before);
        if let Some(hex) = escape.strip_prefix("u{") {
            let (hex, after) = hex.split_once('}').unwrap();
            plain.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
            rest = after;
        } else {
            plain.push(match escape.as_bytes()[0] {
                b'n' => '\n',
                other => char::from(other),
            });
            rest = &escape[1..];
        }
    }
    plain + rest
}

#[test]
fn letter_case_and_width_do_not_matter() {
    for name in ["auto", "words-2", "chars-4", "jieba-5"] {
        let profile: Profile = name.parse().unwrap();
        let plain = profile.fingerprint::<u64>("Simhash, 2007: near-duplicates");
        assert_eq!(profile.fingerprint("ＳＩＭＨＡＳＨ，　２００７：　near-duplicates"), plain, "{name}");
    }
}

/// Returns the hash of a feature in the feature sets of a profile, computed by the definition in `format-spec/signature.md`.
fn feature_hash(profile: &str, feature: &str) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // Other profiles use keywords, or features that are no n-grams of words.
    if !["words", "code", "by-script"].iter().any(|start| profile.starts_with(start)) {
        return xxh3_64(feature.as_bytes());
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let word_hash = |word: &str| {
        let (low, high) = word.as_bytes().split_at(word.len().min(8));
        match high.len() {
            0..=8 => mix(number(low) ^ mix(number(high).wrapping_add(STEP.wrapping_mul(word.len() as u64)))),
            _ => xxh3_64(word.as_bytes()),
        }
    };
    let hashes: Vec<u64> = feature.split(' ').map(word_hash).collect();
    match hashes[..] {
        [hash] => hash,
        _ => mix(hashes.iter().fold(0_u64, |sum, &hash| sum.wrapping_mul(STEP).wrapping_add(hash))),
    }
}

#[test]
fn features_make_the_fingerprint() {
    let text = "数据库引擎是用于存储、处理和保护数据的核心服务。";
    for name in NAMES {
        let profile = profile(name);
        let mut features = Vec::new();
        profile.visit_features(text, |feature, weight| features.push((feature.to_owned(), weight)));
        features.reverse();
        assert!(!features.is_empty());
        let borrowed = features.iter().map(|(feature, weight)| (feature, *weight));
        assert_eq!(simhash::<u64>(borrowed), profile.fingerprint(text), "{name}");
        let set: BTreeSet<u64> = features.iter().map(|(feature, _)| feature_hash(name, feature)).collect();
        assert_eq!(profile.feature_set(text), Vec::from_iter(set), "{name}");
    }
}

#[test]
fn letter_case_form_and_digits_matter_where_they_are_kept() {
    let same = |name: &str, a: &str, b: &str| {
        let profile = profile(name);
        profile.fingerprint::<u64>(a) == profile.fingerprint(b)
    };
    assert!(!same("words-1,keep-case", "Word", "word"));
    assert!(!same("words-1,no-nfkc", "ｗｏｒｄ", "word"));
    assert!(same("words-1,no-nfkc", "ＷＯＲＤ", "ｗｏｒｄ"));
    assert!(same("words-1,strip-digits", "page 12 of 30", "page of"));
    assert!(same("auto,simplified", "漢語的資料庫", "汉语的资料库"));
    assert!(!same("auto", "漢語的資料庫", "汉语的资料库"));
    assert!(same("chars-1,only-han", "（数据）SQL 2019 库", "数据 库"));
    assert!(same("words-2,html-text", "<p>one <i>two</i><script>x</script>", "one two"));
    assert!(same("words-2,main-text", "<nav>Home</nav><p>one two", "one two"));
}

#[test]
fn weights_of_a_learned_table() {
    let profile: Profile = "words-1".parse().unwrap();
    let mut frequencies = DocumentFrequencies::default();
    for text in ["a rose", "a tree", "a rose garden"] {
        frequencies.add(&profile, text);
    }
    let table: String = frequencies.rows(1).iter().map(|row| format!("{row}\n")).collect();
    let idf = Some(Resource::new("idf.tsv", table));
    let profile =
        Profile::with_resources("words-1,weights=idf", &Resources { idf, ..Resources::default() }).unwrap();
    let mut found = Vec::new();
    profile.visit_features("a rose a lawn", |feature, weight| {
        found.push((feature.to_owned(), (f64::from(weight) / f64::from(1 << 24) * 1e4).round() / 1e4));
    });
    let idf = |documents: f64| ((1.0 + 3.0 / documents).ln() * 1e4).round() / 1e4;
    // A feature missing from the table has the table's lower median, which is the IDF of two documents.
    let expected = [("a", idf(3.0)), ("rose", idf(2.0)), ("a", idf(3.0)), ("lawn", idf(2.0))];
    assert_eq!(found, expected.map(|(feature, weight)| (feature.to_owned(), weight)));
}

proptest! {
    #[test]
    fn nothing_panics(
        any in any::<String>(),
        mixed in "([a-z ]|[\u{4e00}-\u{4fff}]|[漢語資料庫]|[<>&/=\"\\[\\]()`~\n\r\t_.!?0-9-]|nav|script|\\PC){0,80}",
    ) {
        for name in NAMES {
            let profile = profile(name);
            for text in [&any, &mixed] {
                let simhash = profile.fingerprint::<u64>(text);
                prop_assert_eq!(simhash, profile.fingerprint::<u64>(text));
                let wide = profile.fingerprint::<u128>(text);
                prop_assert_eq!(simhash.map(|s| s.features), wide.map(|s| s.features));
                if let Some(simhash) = simhash {
                    prop_assert!(profile.feature_set(text).len() as u32 >= simhash.features);
                }
            }
        }
    }

    /// Fingerprints do not depend on the order of the lines, phrases or sentences that are the features of a text.
    #[test]
    fn order_does_not_matter(lines in prop::collection::vec("[a-z]{1,3}\t[0-9]{1,2}", 1..20), rotation in 0_usize..20) {
        let mut rotated = lines.clone();
        rotated.rotate_left(rotation % lines.len());
        for name in ["features", "features,weights=levels", "features,weights=none", "phrases,weights=none", "sentences-5"] {
            let profile = profile(name);
            let join = |lines: &[String]| lines.join(if name.starts_with('f') { "\n" } else { ". " });
            prop_assert_eq!(profile.fingerprint::<u64>(&join(&lines)), profile.fingerprint(&join(&rotated)));
        }
    }
}

#[test]
fn the_first_jieba_is_shared_between_threads() {
    let profile: Profile = "jieba-5".parse().unwrap();
    let text = "数据库引擎";
    let threads: Vec<_> = (0..4)
        .map(|_| profile.clone())
        .map(|profile| std::thread::spawn(move || profile.fingerprint::<u64>(text)))
        .collect();
    let expected = profile.fingerprint(text);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}
