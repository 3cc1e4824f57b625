//! `POST /compare`: texts word by word, and fingerprints.

use serde_json::json;

use crate::support::{TestService, create_fingerprints, create_similar, hex};

#[test]
fn texts_are_compared_word_by_word() {
    let service = TestService::similar();
    let words: Vec<String> = (0..200).map(|i| format!("word{i}")).collect();
    let text_with = |word: &str| [&words[..100], &[word.to_owned()], &words[101..]].concat().join(" ");
    let (text, other) = (text_with("old"), text_with("new"));
    service.post("/documents", &json!({"id": 7, "text": text})).with_status(201);
    let answer = service.post("/compare", &json!({"a": {"text": other}, "b": {"id": 7}})).with_status(200);
    let segments = answer["segments"].as_array().unwrap();
    // 25 words on each side of the change, and at both ends.
    assert_eq!(segments.len(), 7, "{segments:?}");
    assert_eq!((&segments[1], &segments[5]), (&json!(50), &json!(49)));
    assert_eq!(segments[3], json!([" new", " old"]));
    let whole = segments[2].as_str().unwrap();
    assert!(whole.starts_with(" word75 ") && whole.ends_with(" word99"), "{whole}");
    assert_eq!(answer["cut"], false);
    // The same number as in the answer of a query.
    let found = service.post("/query", &json!({"text": other})).with_status(200);
    assert_eq!(answer["similarity"], found["matches"][0]["similarity"]);
    let same = service.post("/compare", &json!({"a": {"id": 7}, "b": {"id": "7"}})).with_status(200);
    assert_eq!((&same["similarity"], same["segments"].as_array().unwrap().len()), (&json!(1.0), 3));
    let long = "x ".repeat(40_000);
    let cut = service.post("/compare", &json!({"a": {"text": long}, "b": {"text": "x"}})).with_status(200);
    assert_eq!(cut["cut"], true);
    for (body, status, code, message) in [
        (json!({"a": {"id": 8}, "b": {"id": 7}}), 404, "no-document", "`8`"),
        (json!({"a": {"fingerprint": hex(1)}, "b": {"id": 7}}), 422, "wrong-kind", "send a `text`"),
        (json!({"a": {}, "b": {"id": 7}}), 422, "invalid-member", "exactly one"),
        (json!({"a": {"id": 7, "text": "x"}, "b": {"id": 7}}), 422, "invalid-member", "exactly one"),
        (json!({"a": {"id": 7}}), 422, "invalid-member", "missing field `b`"),
        (json!([]), 422, "invalid-member", "struct CompareMessage"),
    ] {
        service.post("/compare", &body).fails(status, code, message);
    }
}

#[test]
fn a_store_without_texts_compares_given_texts_alone() {
    let service = TestService::start(|path| create_similar(path, false), |_| ());
    service.post("/documents", &json!({"id": 7, "text": "a b c d"})).with_status(201);
    let refused = service.post("/compare", &json!({"a": {"text": "a"}, "b": {"id": 7}}));
    refused.fails(422, "no-texts", "keeps no texts");
    let given = service.post("/compare", &json!({"a": {"text": "a b c d"}, "b": {"text": "a b c"}}));
    assert_eq!(given.with_status(200)["similarity"], 0.5);
}

#[test]
fn fingerprints_are_compared_by_bits() {
    let service = TestService::fingerprints();
    service.add(7, 0b1011).with_status(201);
    let bits =
        |distance: u32, a: u64, b: u64| json!({"distance": distance, "fingerprints": [hex(a), hex(b)]});
    let compare = |a, b| service.post("/compare", &json!({"a": a, "b": b}));
    assert_eq!(
        compare(json!({"fingerprint": hex(0)}), json!({"id": 7})).with_status(200),
        bits(3, 0, 0b1011)
    );
    assert_eq!(compare(json!({"id": "7"}), json!({"id": 7})).with_status(200), bits(0, 0b1011, 0b1011));
    compare(json!({"id": 8}), json!({"id": 7})).fails(404, "no-document", "`8`");
    compare(json!({"text": " "}), json!({"id": 7})).fails(422, "empty-text", "no words");
    compare(json!({"fingerprint": "0".repeat(32)}), json!({"id": 7})).fails(422, "bad-argument", "64-bit");
    // A text has the fingerprint under which it is stored.
    service.post("/documents?if_new=false", &json!({"id": 9, "text": "to be or not to be"})).with_status(201);
    let stored = service.get("/documents/9").with_status(200)["fingerprints"][0].clone();
    let text = compare(json!({"text": "to be or not to be"}), json!({"id": 9})).with_status(200);
    assert_eq!(text, json!({"distance": 0, "fingerprints": [stored, stored]}));
    let wide = TestService::start(|path| create_fingerprints::<u128>(path, 3), |_| ());
    let digits = ["0".repeat(32), format!("{:032x}", 1_u128 << 100)];
    let body = json!({"a": {"fingerprint": digits[0]}, "b": {"fingerprint": digits[1]}});
    let answer = wide.post("/compare", &body).with_status(200);
    assert_eq!(answer, json!({"distance": 1, "fingerprints": digits}));
}
