use super::*;

fn example() -> Manifest {
    let segment = |number, plan: &str| SegmentEntry {
        number,
        fingerprints: 5,
        ids: 7,
        names: u64::from(number == 1),
        tombstones: number / 9 * 3,
        marks: number / 9 * 2,
        tables: 2,
        has_ids: true,
        has_names: number == 1,
        footers: vec![7; if number == 9 { 5 } else { 4 }],
        plan: plan.to_string(),
    };
    let settings = Settings {
        bits: 64,
        distance: 3,
        codec: Codec::Gap,
        ids: true,
        block_size: Some(512),
        span: None,
        profile: "words-2".to_string(),
        plan: "auto".to_string(),
    };
    Manifest {
        settings,
        next_number: 12,
        first_log: 11,
        sequence: 77,
        highest_id: Some(5),
        segments: vec![segment(1, "probe-2"), segment(9, "é")],
    }
}

#[test]
fn comes_back() {
    let bytes = example().encode();
    assert_eq!(Manifest::decode(Path::new("m"), &bytes).unwrap(), example());
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let mut bytes = example().encode();
    for len in 0..bytes.len() {
        assert!(Manifest::decode(Path::new("m"), &bytes[..len]).is_err(), "{len}");
    }
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Manifest::decode(Path::new("m"), &bytes).is_err(), "{bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn hostile_manifests_with_a_right_checksum() {
    let sound = example().encode();
    for at in 12..sound.len() - 12 {
        for value in [0, 1, 127, 255] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            let footer = bytes.len() - 12;
            let crc = crc32fast::hash(&bytes[..footer]);
            bytes[footer..footer + 4].copy_from_slice(&crc.to_le_bytes());
            let _ = Manifest::decode(Path::new("m"), &bytes);
        }
    }
}

#[test]
fn only_files_of_a_store_are_ever_removed() {
    let made = [
        "000001.log",
        "000001.tombstones",
        "000001.marks",
        "000001-00.table",
        "000001.ids",
        "000012.names",
        "1000000-63.table",
        "MANIFEST.tmp",
    ];
    for name in made.into_iter().chain(["000001.ids.tmp", "000001.0.tmp", "000001-01.12.tmp"]) {
        assert!(is_store_file(name), "{name}");
    }
    let others = ["MANIFEST", "LOCK", "notes.txt", "table", "00001.ids", "000001.txt", "my.names"];
    let similar =
        ["20240115-pages.table", "000001-00.ids", "000001.table", "000001-000.table", "000001-.ids"];
    for name in others.into_iter().chain(similar) {
        assert!(!is_store_file(name), "{name}");
    }
}
