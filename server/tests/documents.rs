//! Documents in, matches out: the answers of each kind of store.

use serde_json::{Value, json};
use simstore::StoreOptions;

use crate::support::{Random, TestService, create_fingerprints, create_similar, hex, random_text};

fn none() -> Value {
    json!([])
}

#[test]
fn a_fingerprint_is_stored_once() {
    let service = TestService::fingerprints();
    let document = json!({"id": 7, "fingerprint": "0123456789abcdef"});
    let stored = json!({"id": 7, "result": "stored", "matches": none(), "truncated": false, "total": 0});
    assert_eq!(service.post("/documents", &document).with_status(201), stored);
    // The same request again, as after a lost answer.
    let present = service.post("/documents", &document).with_status(200);
    assert_eq!(
        present,
        json!({"id": 7, "result": "present", "matches": none(), "truncated": false, "total": 0})
    );
    let near = json!({"id": 8, "fingerprint": "0123456789abcdee"});
    let matches = json!([{"id": 7, "fingerprint": "0123456789abcdef", "distance": 1}]);
    let duplicate = service.post("/documents", &near).with_status(200);
    assert_eq!(
        duplicate,
        json!({"id": 8, "result": "duplicate", "matches": matches, "truncated": false, "total": 1})
    );
    assert_eq!(service.post("/documents?if_new=false", &near).with_status(201)["result"], "stored");
    let other = json!({"id": 7, "fingerprint": "ffffffffffffffff"});
    for query in ["", "?if_new=false"] {
        let refused = service.post(&format!("/documents{query}"), &other);
        refused.fails(409, "id-conflict", "the id 7 already has the fingerprint 0123456789abcdef");
    }
    assert_eq!(
        service.get("/documents/7").with_status(200),
        json!({"id": 7, "fingerprints": ["0123456789abcdef"]})
    );
    assert_eq!(service.delete("/documents/7").with_status(200), json!({"id": 7, "deleted": true}));
    service.delete("/documents/7").fails(404, "no-document", "`7`");
    service.get("/documents/7").fails(404, "no-document", "`7`");
    assert_eq!(service.post("/documents?if_new=false", &other).with_status(201)["id"], 7);
}

#[test]
fn queries_of_fingerprints() {
    let service = TestService::fingerprints();
    for (id, fingerprint) in [(1, 0), (2, 0b111), (3, 0b1), (4, 0b11), (5, u64::MAX)] {
        let document = json!({"id": id, "fingerprint": hex(fingerprint)});
        service.post("/documents?if_new=false&durability=os", &document).with_status(201);
    }
    let ids = |query: Value| {
        let answer = service.post("/query", &query).with_status(200);
        let matches = answer["matches"].as_array().unwrap();
        let ids: Vec<u64> = matches.iter().map(|found| found["id"].as_u64().unwrap()).collect();
        (ids, answer["truncated"].as_bool().unwrap(), answer["total"].as_u64().unwrap())
    };
    assert_eq!(ids(json!({"fingerprint": hex(0)})), (vec![1, 3, 4, 2], false, 4));
    assert_eq!(ids(json!({"fingerprint": hex(0), "distance": 1})), (vec![1, 3], false, 2));
    assert_eq!(ids(json!({"fingerprint": hex(0), "limit": 2})), (vec![1, 3], true, 4));
    assert_eq!(ids(json!({"fingerprint": hex(0), "limit": 0})), (vec![], true, 4));
    // Ties by id; the document itself is no match.
    assert_eq!(ids(json!({"id": 3, "distance": 1})), (vec![1, 4], false, 2));
    assert_eq!(ids(json!({"id": "3"})), (vec![1, 4, 2], false, 3));
    service.post("/query", &json!({"id": 9})).fails(404, "no-document", "`9`");
    let too_far = service.post("/query", &json!({"fingerprint": hex(0), "distance": 4}));
    too_far.fails(422, "distance", "distance 4 is more than the 3");
    let list = json!([{"fingerprint": hex(0), "limit": 1}, {"id": 9}, {"fingerprint": 0}, {"id": 5}]);
    let answers = service.post("/query", &list).with_status(200);
    assert_eq!(answers[0]["matches"][0]["id"], 1);
    assert_eq!((&answers[1]["code"], &answers[2]["code"]), (&json!("no-document"), &json!("invalid-member")));
    assert_eq!(answers[3]["total"], 0);
    let lines = format!("{{\"fingerprint\": \"{}\"}}\n\n{{\"id\": 9}}\n{{\"id\": 5}}", hex(1));
    let answers = service.post_lines("/query", &lines);
    assert_eq!(
        (answers.len(), &answers[0]["total"], &answers[1]["code"]),
        (3, &json!(4), &json!("no-document"))
    );
}

#[test]
fn wide_fingerprints_and_texts() {
    let service = TestService::start(|path| create_fingerprints::<u128>(path, 6), |_| ());
    let digits = "0123456789abcdef0123456789abcdef";
    let document = json!({"id": "a", "fingerprint": digits.to_uppercase()});
    service.post("/documents", &document).with_status(201);
    assert_eq!(service.get("/documents/a").with_status(200), json!({"id": "a", "fingerprints": [digits]}));
    let narrow = service.post("/query", &json!({"fingerprint": hex(0)}));
    narrow.fails(422, "bad-argument", "128-bit");
    let text = "It was the best of times, it was the worst of times, it was the age of wisdom";
    service.post("/documents", &json!({"id": "b", "text": text})).with_status(201);
    let found = service.post("/query", &json!({"text": text})).with_status(200);
    assert_eq!((&found["matches"][0]["id"], &found["matches"][0]["distance"]), (&json!("b"), &json!(0)));
    service.post("/documents", &json!({"id": "c", "text": " ?! "})).fails(422, "empty-text", "no words");
    service.post("/query", &json!({"text": ""})).fails(422, "empty-text", "no words");
}

#[test]
fn numbers_and_names() {
    let service = TestService::fingerprints();
    let add = |id: Value, fingerprint: u64| {
        service.post("/documents?durability=os", &json!({"id": id, "fingerprint": hex(fingerprint)}))
    };
    // The first id decides: names.
    assert_eq!(
        add(json!("https://example.org/ä?b=1#c"), 0xff).with_status(201)["id"],
        "https://example.org/ä?b=1#c"
    );
    assert_eq!(add(json!(7), 0xff00).with_status(201)["id"], "7");
    assert_eq!(add(json!("7"), 0xff00).with_status(200)["result"], "present");
    add(json!("7"), 0xff_0000).fails(409, "id-conflict", "the name `7` already has another fingerprint");
    let unnamed = service.post("/documents", &json!({"fingerprint": hex(0xff << 32)})).with_status(201);
    assert_eq!(unnamed["id"], "2");
    let path = "/documents/https:%2F%2Fexample.org%2F%C3%A4%3Fb=1%23c";
    assert_eq!(service.get(path).with_status(200)["fingerprints"], json!([hex(0xff)]));
    assert_eq!(
        service.post("/query", &json!({"id": "https://example.org/ä?b=1#c"})).with_status(200)["total"],
        0
    );
    service.delete(path).with_status(200);
    service.get(path).fails(404, "no-document", "example.org");
    assert_eq!(add(json!("https://example.org/ä?b=1#c"), 0xff << 40).with_status(201)["result"], "stored");
}

#[test]
fn great_numbers_are_strings() {
    let mut service = TestService::fingerprints();
    let greatest = u64::MAX.to_string();
    let document = json!({"id": greatest, "fingerprint": hex(1)});
    assert_eq!(service.post("/documents", &document).with_status(201)["id"], json!(greatest));
    assert_eq!(service.get(&format!("/documents/{greatest}")).with_status(200)["id"], json!(greatest));
    service.add(9, 0xff00).with_status(201);
    // The next number would be 2^64.
    let unnumbered = json!({"fingerprint": hex(0xff << 16)});
    service.post("/documents", &unnumbered).fails(507, "exhausted", "greatest id");
    service.restart(|_| ());
    assert_eq!(service.post("/documents", &document).with_status(200)["result"], "present");
    service.post("/documents", &unnumbered).fails(507, "exhausted", "greatest id");
    let named = service.post("/documents", &json!({"id": "a", "fingerprint": hex(0xff << 24)}));
    named.fails(422, "id-kind", "numbers");
}

#[test]
fn documents_without_ids_are_numbered() {
    let service = TestService::fingerprints();
    let add = |fingerprint: u64| {
        service.post("/documents?durability=os", &json!({"fingerprint": hex(fingerprint)})).with_status(201)["id"].clone()
    };
    assert_eq!((add(0xff), add(0xff << 8)), (json!(0), json!(1)));
    service.add(40, 0xff << 16).with_status(201);
    assert_eq!(add(0xff << 24), 41);
}

#[test]
fn a_store_without_ids() {
    let create = |path: &std::path::Path| {
        simstore::Store::<u64>::open(path, StoreOptions { ids: Some(false), ..StoreOptions::default() })
            .unwrap();
    };
    let service = TestService::start(create, |_| ());
    let document = json!({"fingerprint": hex(0xff)});
    assert_eq!(service.post("/documents", &document).with_status(201)["id"], Value::Null);
    assert_eq!(service.post("/documents", &document).with_status(200)["result"], "present");
    let found = service.post("/query", &document).with_status(200);
    assert_eq!(found["matches"], json!([{"id": null, "fingerprint": hex(0xff), "distance": 0}]));
    service.post("/documents", &json!({"id": 1, "fingerprint": hex(1 << 40)})).fails(422, "no-ids", "no ids");
    service.get("/documents/1").fails(422, "no-ids", "no ids");
    service.delete("/documents/1").fails(422, "no-ids", "no ids");
    service.post("/query", &json!({"id": 1})).fails(422, "no-ids", "no ids");
    // The store has no profile either.
    service.post("/documents", &json!({"text": "a b c"})).fails(422, "no-profile", "no text profile");
}

#[test]
fn similar_documents() {
    for with_texts in [true, false] {
        let service = TestService::start(|path| create_similar(path, with_texts), |_| ());
        let text = random_text(&mut Random(1), 60);
        let near = format!("{text} and three words");
        let add = |id: Value, text: &str, query: &str| {
            service.post(&format!("/documents{query}"), &json!({"id": id, "text": text}))
        };
        assert_eq!(add(json!("one"), &text, "").with_status(201)["result"], "stored");
        assert_eq!(add(json!("one"), &text, "").with_status(200)["result"], "present");
        assert_eq!(add(json!("one"), &text, "?if_new=false").with_status(200)["result"], "present");
        let duplicate = add(json!("two"), &near, "").with_status(200);
        assert_eq!(
            (&duplicate["result"], &duplicate["matches"][0]["id"]),
            (&json!("duplicate"), &json!("one"))
        );
        let (found, error) =
            (&duplicate["matches"][0]["similarity"], &duplicate["matches"][0]["standard_error"]);
        assert!(
            found.as_f64().unwrap() > 0.8 && (error.as_f64().unwrap() == 0.0) == with_texts,
            "{duplicate}"
        );
        add(json!("one"), &random_text(&mut Random(2), 60), "").fails(409, "id-conflict", "the name `one`");
        assert_eq!(add(json!("two"), &near, "?if_new=false").with_status(201)["result"], "stored");
        let found = service.post("/query", &json!({"text": near})).with_status(200);
        assert_eq!((&found["total"], &found["matches"][0]["id"]), (&json!(2), &json!("two")));
        assert_eq!(found["matches"][0]["similarity"], 1.0);
        let by_id = service.post("/query", &json!({"id": "two"})).with_status(200);
        assert_eq!((&by_id["total"], &by_id["matches"][0]["id"]), (&json!(1), &json!("one")));
        let exact = service.post("/query", &json!({"text": near, "similarity": 1})).with_status(200);
        assert_eq!(exact["total"], 1);
        let too_low = service.post("/query", &json!({"text": near, "similarity": 0.5}));
        too_low.fails(422, "similarity", "less than the 0.8");
        let stored = service.get("/documents/one").with_status(200);
        assert_eq!(stored.get("text"), with_texts.then_some(&json!(text)));
        service.delete("/documents/one").with_status(200);
        service.get("/documents/one").fails(404, "no-document", "one");
        add(json!("three"), " \n", "").fails(422, "empty-text", "no words");
        service
            .post("/documents", &json!({"id": 1, "fingerprint": hex(1)}))
            .fails(422, "wrong-kind", "send a `text`");
        service.post("/query", &json!({"fingerprint": hex(1)})).fails(422, "wrong-kind", "send a `text`");
        service.post("/query", &json!({"text": "a", "distance": 1})).fails(422, "wrong-kind", "similarity");
    }
}

#[test]
fn similar_documents_with_numbers() {
    let service = TestService::similar();
    let text = random_text(&mut Random(3), 50);
    service.post("/documents", &json!({"id": 5, "text": text})).with_status(201);
    assert_eq!(
        service.post("/documents", &json!({"id": 5, "text": text})).with_status(200)["result"],
        "present"
    );
    let other = json!({"id": 5, "text": random_text(&mut Random(4), 50)});
    service.post("/documents", &other).fails(409, "id-conflict", "the id 5 already has another text");
    let numbered = service.post("/documents", &json!({"text": random_text(&mut Random(5), 50)}));
    assert_eq!(numbered.with_status(201)["id"], 6);
    assert_eq!(service.get("/documents/5").with_status(200), json!({"id": 5, "text": text}));
    service.delete("/documents/5?durability=os").with_status(200);
    service.get("/documents/5").fails(404, "no-document", "5");
    assert_eq!(service.post("/documents", &other).with_status(201)["id"], 5);
}

#[test]
fn lists_and_lines_answer_in_order() {
    let service = TestService::fingerprints();
    let far = |i: u64| hex(0xff << (8 * i));
    let list = json!([
        {"id": 1, "fingerprint": far(0)},
        {"id": 2, "fingerprint": far(0)},
        {"id": 1, "fingerprint": far(1)},
        {"id": -1, "fingerprint": far(2)},
        {"id": 3, "text": "?"},
        {"fingerprint": far(3)},
    ]);
    let expected = ["stored", "duplicate", "id-conflict", "invalid-member", "empty", "stored"];
    let outcomes = |answers: &[Value]| {
        let outcome = |answer: &Value| {
            answer.get("result").or(answer.get("code")).unwrap().as_str().unwrap().to_owned()
        };
        answers.iter().map(outcome).collect::<Vec<_>>()
    };
    let answers = service.post("/documents", &list).with_status(200);
    assert_eq!(outcomes(answers.as_array().unwrap()), expected);
    assert_eq!(service.post("/documents", &json!([])).with_status(200), none());

    let service = TestService::fingerprints();
    let lines: String = list.as_array().unwrap().iter().map(|document| format!("{document}\r\n")).collect();
    assert_eq!(outcomes(&service.post_lines("/documents", &lines)), expected);
    let many: String = (0..5000_u64)
        .map(|i| format!("{}\n", json!({"id": i + 10, "fingerprint": hex(Random::hash(i))})))
        .collect();
    let answers = service.post_lines("/documents?if_new=false&durability=os", &many);
    assert_eq!(answers.len(), 5000);
    assert!(answers.iter().zip(10..).all(|(answer, id)| answer["id"] == id && answer["result"] == "stored"));
    let stats = service.get("/stats").with_status(200);
    assert_eq!((&stats["documents"], &stats["kind"]), (&json!(5002), &json!("fingerprints")));
}

#[test]
fn flush_compact_and_stats() {
    let service = TestService::fingerprints();
    for round in 0..3 {
        for i in 0..50 {
            service.add(round * 100 + i, Random::hash(round * 100 + i)).with_status(201);
        }
        assert_eq!(service.post("/flush", &json!({})).with_status(200), json!({"segments": round + 1}));
    }
    let stats = service.get("/stats").with_status(200);
    assert_eq!((stats["segments"].as_array().unwrap().len(), &stats["flushes"]), (3, &json!(3)));
    assert!(
        stats["compaction_debt_bytes"].as_u64().unwrap() > 0 && stats["segments"][0]["age_seconds"].is_f64()
    );
    assert_eq!(service.post("/compact", &json!({})).with_status(202), json!({"compaction": "started"}));
    loop {
        let stats = service.get("/stats").with_status(200);
        if stats["compaction"]["is_running"] == false {
            assert_eq!((stats["segments"].as_array().unwrap().len(), &stats["documents"]), (1, &json!(150)));
            assert_eq!((&stats["compaction_debt_bytes"], &stats["last_error"]), (&json!(0), &Value::Null));
            break;
        }
    }
    assert_eq!(service.get("/livez").with_status(200)["status"], "live");
    assert_eq!(service.get("/readyz").with_status(200)["status"], "ready");
}

#[test]
fn metrics_count_requests() {
    let service = TestService::fingerprints();
    service.add(1, 0xff).with_status(201);
    service.get("/nowhere/1");
    let response = service.request("GET", "/metrics").send().unwrap();
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = response.text().unwrap();
    for line in [
        r#"simstore_requests_total{method="POST",route="/documents",status="201"} 1"#,
        r#"simstore_requests_total{method="GET",route="other",status="404"} 1"#,
        r#"simstore_request_seconds_bucket{le="0.00005",route="/documents"}"#,
        "simstore_documents 1",
        "simstore_segments 0",
        "simstore_memtable_entries 1",
        "simstore_sync_seconds_count 0",
        "simstore_requests_under_way 0",
        "simstore_requests_rejected_total 0",
        "# EOF",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
}
