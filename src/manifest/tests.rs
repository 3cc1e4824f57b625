use super::*;
use crate::error::Damage;
use crate::format::{manifest_header as header, manifest_segment as entry};

fn example() -> Manifest {
    let segment = |number, plan: &str| SegmentEntry {
        number,
        fingerprints: 5,
        ids: 7,
        names: u64::from(number == 1),
        tombstones: number / 9 * 3,
        metadata: number / 9 * 2,
        notes: 0,
        tables: 2,
        has_ids: true,
        footer_crcs: vec![7; if number == 9 { 5 } else { 4 }],
        plan: plan.to_string(),
    };
    let settings = Settings {
        bits: 64,
        distance: 3,
        codec: Codec::Gap,
        has_ids: true,
        block_size: Some(512),
        span: None,
        profile: "words-2".to_string(),
        plan: PlanChoice::Auto,
    };
    Manifest {
        settings,
        next_number: 12,
        first_log: 11,
        first_sequence: 77,
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

/// Corrects the checksum of a changed manifest, then decodes the manifest.
fn decode_with_crc(mut bytes: Vec<u8>) -> Result<Manifest> {
    let footer = bytes.len() - 12;
    let crc = crc32fast::hash(&bytes[..footer]);
    bytes[footer..footer + 4].copy_from_slice(&crc.to_le_bytes());
    Manifest::decode(Path::new("m"), &bytes)
}

#[test]
fn hostile_manifests_with_a_right_checksum() {
    let sound = example().encode();
    for at in 12..sound.len() - 12 {
        for value in [0, 1, 127, 255] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            let _ = decode_with_crc(bytes);
        }
    }
}

#[test]
fn each_field_has_its_limits() {
    let sound = example().encode();
    // The first segment follows the profile and the plan. It has the checksums of four files and the plan "probe-2".
    let first = header::LEN + 4 + "words-2".len() + 4 + "auto".len();
    let second = first + entry::LEN + 4 * 4 + 4 + "probe-2".len();
    let cases: [(usize, &[u8], &str); 27] = [
        (header::BITS, &[63], "bits"),
        (header::DISTANCE, &[17], "distance"),
        (header::CODEC, &[5], "codec"),
        (header::FLAGS, &[4], "flags"),
        (header::BLOCK_SIZE, &[1, 2], "block size"),
        (header::BLOCK_SIZE, &[0, 0, 2], "block size"),
        (header::SPAN, &[1, 1], "span"),
        (header::RESERVED, &[1], "reserved"),
        (header::RESERVED + 1, &[1], "reserved"),
        (header::RESERVED_AT_END, &[1], "reserved"),
        (header::NEXT_NUMBER, &[0], "next number"),
        (header::NEXT_NUMBER, &[1, 0, 0, 0, 0, 0, 1], "next number"),
        (header::FIRST_LOG, &[12], "first log"),
        (first + entry::NUMBER, &[12], "number"),
        (second + entry::NUMBER, &[1], "number"),
        (first + entry::IDS, &[4], "ids"),
        (first + entry::NAMES, &[0], "names"),
        (second + entry::NAMES, &[1], "names"),
        (first + entry::TOMBSTONES, &[1], "tombstones"),
        (second + entry::TOMBSTONES, &[0], "tombstones"),
        (first + entry::METADATA, &[1], "metadata"),
        (second + entry::METADATA, &[0], "metadata"),
        (first + entry::NOTES, &[1], "notes"),
        (first + entry::TABLES, &[0], "tables"),
        (first + entry::TABLES, &[65], "tables"),
        (first + entry::FLAGS, &[32], "flags"),
        (first + entry::FLAGS, &[0, 1], "flags"),
    ];
    for (at, value, field) in cases {
        let mut bytes = sound.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        let error = decode_with_crc(bytes).unwrap_err();
        let Error::Corrupt { offset, damage: Damage::Field { name, .. }, .. } = &error else {
            panic!("{field}: {error}")
        };
        assert_eq!((*offset, *name), (at as u64, field));
    }
    // A highest id without its flag; and segments with ids in a store without ids.
    for (flags, field) in [(1, "highest id"), (2, "ids")] {
        let mut bytes = sound.clone();
        bytes[header::FLAGS] = flags;
        let error = decode_with_crc(bytes).unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
    // One byte less or more than the segments need.
    for len in [sound.len() - 1, sound.len() + 1] {
        let mut bytes = sound[..sound.len() - 12].to_vec();
        bytes.resize(len - 12, 0);
        bytes.extend_from_slice(&sound[sound.len() - 12..]);
        assert!(matches!(decode_with_crc(bytes), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn other_versions_are_refused() {
    for version in [0, 2, 3, 6] {
        let mut bytes = example().encode();
        assert_eq!(bytes[header::VERSION], 1);
        bytes[header::VERSION] = version;
        let error = decode_with_crc(bytes).unwrap_err();
        assert!(matches!(error, Error::UnsupportedVersion { supported: 1, .. }), "{version}: {error}");
    }
}

#[test]
fn names_and_notes_need_ids() {
    let mut manifest = example();
    manifest.settings.has_ids = false;
    manifest.highest_id = None;
    for segment in &mut manifest.segments {
        (segment.has_ids, segment.ids, segment.names, segment.notes) = (false, 0, 0, 0);
    }
    let decode = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        for segment in &mut manifest.segments {
            segment.footer_crcs.resize(segment.file_names().len(), 7);
        }
        Manifest::decode(Path::new("m"), &manifest.encode()).map(drop)
    };
    decode(&manifest).unwrap();
    let field = |manifest: &Manifest| match decode(manifest).unwrap_err() {
        Error::Corrupt { damage: Damage::Field { name, .. }, .. } => name,
        error => panic!("{error}"),
    };
    let mut other = manifest.clone();
    other.segments[0].names = 1;
    assert_eq!(field(&other), "names");
    let mut other = manifest.clone();
    other.segments[0].notes = 1;
    assert_eq!(field(&other), "notes");
    manifest.highest_id = Some(0);
    assert_eq!(field(&manifest), "flags");
}

#[test]
fn a_plan_of_another_version_comes_back() {
    let mut manifest = example();
    manifest.settings.plan = PlanChoice::Named("of another version".to_string());
    assert_eq!(Manifest::decode(Path::new("m"), &manifest.encode()).unwrap(), manifest);
}

#[test]
fn only_files_of_a_store_are_ever_removed() {
    let made = [
        "000001.log", "000001.tombstones", "000001.metadata", "000001.notes", "000001-00.table",
        "000001.ids", "000012.names", "1000000-63.table", "MANIFEST.tmp",
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
