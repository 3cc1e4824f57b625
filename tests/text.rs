//! Fingerprints of texts stay what they are: stores hold them for years.
#![cfg(feature = "text")]

use simstore::Fingerprint;
use simstore::text::{Profile, Simhash, simhash};

/// A row of the golden file: an update of a dependency that changes a value here changes the
/// fingerprints of everyone's documents.
#[test]
fn golden() {
    let mut rows = 0;
    for row in include_str!("text/golden.tsv").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let [text, profile, hex64, hex128, features] = fields[..] else { panic!("{row}") };
        let text = unescape(text);
        let profile: Profile = profile.parse().unwrap();
        let features = features.parse().unwrap();
        let expected = Simhash { fingerprint: u64::parse_hex(hex64).unwrap(), features };
        assert_eq!(profile.fingerprint(&text), Some(expected), "{row}");
        let expected = Simhash { fingerprint: u128::parse_hex(hex128).unwrap(), features };
        assert_eq!(profile.fingerprint(&text), Some(expected), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 105);
}

/// Undoes `str::escape_debug` for the characters of the golden file.
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

#[test]
fn features_make_the_fingerprint() {
    let text = "数据库引擎是用于存储、处理和保护数据的核心服务。";
    for name in ["auto", "words-2", "chars-4", "jieba-5"] {
        let profile: Profile = name.parse().unwrap();
        let mut features = Vec::new();
        profile.visit_features(text, |feature, weight| features.push((feature.to_owned(), weight)));
        features.reverse();
        assert_eq!(simhash::<u64>(features), profile.fingerprint(text), "{name}");
    }
}

#[test]
fn the_first_jieba_is_shared_between_threads() {
    let profile: Profile = "jieba-5".parse().unwrap();
    let text = "数据库引擎";
    let threads: Vec<_> =
        (0..4).map(|_| std::thread::spawn(move || profile.fingerprint::<u64>(text))).collect();
    let expected = profile.fingerprint(text);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}
