//! Answers compared with a plain loop over all documents.

use serde_json::{Value, json};

use crate::support::{Random, TestService, hex};

/// A fingerprint near one of a few centers, so that many fingerprints are near one another.
fn clustered(random: &mut Random) -> u64 {
    let center = Random::hash(random.below(40));
    (0..random.below(4)).fold(center, |bits, _| bits ^ 1 << random.below(64))
}

#[test]
fn queries_find_what_a_plain_loop_finds() {
    let mut service = TestService::fingerprints();
    let mut random = Random(1);
    let mut stored: Vec<(u64, u64)> = (0..2000).map(|id| (id, clustered(&mut random))).collect();
    for (round, part) in stored.chunks(500).enumerate() {
        let list = part.iter().map(|&(id, fingerprint)| json!({"id": id, "fingerprint": hex(fingerprint)}));
        let answers = service.post("/documents?if_new=false", &list.collect()).with_status(200);
        assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"] == "stored"));
        if round == 1 {
            service.post("/flush", &json!({})).with_status(200);
        }
    }
    let mut check = |service: &TestService, stored: &[(u64, u64)]| {
        let queries: Vec<(u64, u32)> =
            (0..300).map(|_| (clustered(&mut random), random.below(4) as u32)).collect();
        let list = queries.iter().map(|&(fingerprint, distance)| {
            json!({"fingerprint": hex(fingerprint), "distance": distance, "limit": 10_000})
        });
        let answers = service.post("/query", &list.collect()).with_status(200);
        for (&(query, distance), answer) in queries.iter().zip(answers.as_array().unwrap()) {
            let near = |&&(_, fingerprint): &&(u64, u64)| (fingerprint ^ query).count_ones() <= distance;
            let mut near: Vec<(u32, u64, u64)> = stored
                .iter()
                .filter(near)
                .map(|&(id, fingerprint)| ((fingerprint ^ query).count_ones(), id, fingerprint))
                .collect();
            near.sort_unstable();
            let expected: Vec<Value> = near
                .iter()
                .map(|&(distance, id, fingerprint)| {
                    json!({"id": id, "fingerprint": hex(fingerprint), "distance": distance})
                })
                .collect();
            assert_eq!(answer["matches"], json!(expected));
            assert_eq!((&answer["total"], &answer["truncated"]), (&json!(expected.len()), &json!(false)));
        }
    };
    check(&service, &stored);
    for id in (0..2000).step_by(3) {
        service.delete(&format!("/documents/{id}?durability=os")).with_status(200);
    }
    stored.retain(|(id, _)| id % 3 != 0);
    check(&service, &stored);
    service.restart(|_| ());
    check(&service, &stored);
    for &(id, fingerprint) in stored.iter().step_by(97) {
        let document = service.get(&format!("/documents/{id}")).with_status(200);
        assert_eq!(document, json!({"id": id, "fingerprints": [hex(fingerprint)]}));
    }
}

#[test]
fn of_near_fingerprints_at_once_one_is_stored() {
    let service = TestService::fingerprints();
    for round in 0..20_u64 {
        let center = Random::hash(round);
        let add = |i: u64| {
            // All are within 2 bits of one another.
            let document = json!({"id": round * 100 + i, "fingerprint": hex(center ^ 1 << i)});
            service.post("/documents?durability=os", &document)
        };
        let outcomes: Vec<Value> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|i| scope.spawn(move || add(i).body["result"].clone())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let stored = outcomes.iter().filter(|outcome| *outcome == "stored").count();
        let duplicates = outcomes.iter().filter(|outcome| *outcome == "duplicate").count();
        assert_eq!((stored, duplicates), (1, 7), "{outcomes:?}");
    }
    assert_eq!(service.get("/stats").body["documents"], 20);
}

#[test]
fn of_requests_for_one_id_at_once_one_is_stored() {
    for named in [false, true] {
        let service = TestService::fingerprints();
        for round in 0..20_u64 {
            let id = if named { json!(format!("n{round}")) } else { json!(20 - round) };
            let add = |i: u64| {
                let document = json!({"id": id, "fingerprint": hex(Random::hash(round * 100 + i % 4))});
                service.post("/documents?durability=os&if_new=false", &document)
            };
            let outcomes: Vec<(u16, Value)> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|i| {
                        let add = &add;
                        scope.spawn(move || add(i))
                    })
                    .collect();
                let answers = threads.into_iter().map(|thread| thread.join().unwrap());
                answers.map(|answer| (answer.status, answer.body["result"].clone())).collect()
            });
            let count = |status: u16| outcomes.iter().filter(|(other, _)| *other == status).count();
            // Two requests have each fingerprint: one is stored, the same one is present, the others are conflicts.
            assert_eq!((count(201), count(200), count(409)), (1, 1, 6), "{outcomes:?}");
        }
        assert_eq!(service.get("/stats").body["documents"], 20);
    }
}
