//! The golden logs, and `reader.py`, which shares nothing with the crate.

use std::path::Path;
use std::process::Command;

use super::*;

/// What `reader.py` says of a log; `None` if there is no Python, which on CI is a failure.
fn run_reader(bytes: &[u8], number: u64) -> Option<Result<String, String>> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/reader.py");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{number:06}.log"));
    std::fs::write(&path, bytes).unwrap();
    match Command::new("python3").arg(reader).arg("--log").arg(&path).output() {
        Ok(output) if output.status.success() => Some(Ok(String::from_utf8(output.stdout).unwrap())),
        Ok(output) => Some(Err(String::from_utf8(output.stderr).unwrap())),
        Err(error) if std::env::var_os("CI").is_some() => panic!("python3: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, the independent reader was not run: python3: {error}");
            None
        }
    }
}

/// The lines that `reader.py` prints for the records of a log; texts must have no control characters.
fn lines<F: Fingerprint>(batches: &Batches) -> String {
    let mut text = String::new();
    let hex = |fingerprint: &u128| F::from_u128(*fingerprint).to_hex();
    for (sequence, operation) in
        batches.iter().flat_map(|(sequence, all)| all.iter().map(move |o| (sequence, o)))
    {
        text += &match operation {
            Owned::Insert(fingerprint, id, None) => {
                format!("{sequence}\tinsert\t{}\t{id}\n", hex(fingerprint))
            }
            Owned::Insert(fingerprint, id, Some(name)) => {
                format!("{sequence}\tinsert\t{}\t{id}\t{name}\n", hex(fingerprint))
            }
            Owned::Delete(fingerprint, id) => format!("{sequence}\tdelete\t{}\t{id}\n", hex(fingerprint)),
            Owned::Mark(key, value) => {
                let value: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{sequence}\tmark\t{key}\t{value}\n")
            }
        };
    }
    text
}

/// Compares both readers; returns whether Python was there.
fn check_reader<F: Fingerprint>(bytes: &[u8], number: u64) -> bool {
    let Some(output) = run_reader(bytes, number) else { return false };
    match (read::<F>(bytes, number), output) {
        (Ok(Some((end, batches))), Ok(text)) => {
            let (bits, first, sound, torn) = (F::BITS, end.first_sequence, end.sound_bytes, end.torn_bytes);
            let header = format!(
                "number: {number}\nbits: {bits}\nfirst sequence: {first}\nsound: {sound}\ntorn: {torn}\n"
            );
            assert_eq!(text, header + &lines::<F>(&batches));
        }
        (Ok(None), Ok(text)) => assert!(text.contains("first sequence: None\n"), "{text}"),
        (Err(_), Err(problem)) => assert_eq!(problem.lines().count(), 1, "{problem}"),
        (ours, theirs) => panic!("{ours:?}, but reader.py: {theirs:?}"),
    }
    true
}

/// `UPDATE_GOLDEN=1 cargo test --lib wal` writes the golden logs anew.
fn check_golden<F: Fingerprint>(name: &str, number: u64, first: u64, batches: &[Vec<Owned>]) {
    let mut bytes = log::<F>(number, first, batches, &[0]);
    // The last record is torn.
    let places = places(&bytes);
    bytes.truncate(places[batches.len() - 1] + 45);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/golden").join(name);
    let path = folder.join(format!("{number:06}.log"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == bytes, "{name} is written differently now");
    let (end, found) = read::<F>(&bytes, number).unwrap().unwrap();
    assert_eq!(found, numbered(first, &batches[..batches.len() - 1]));
    assert_eq!(end.torn_bytes, 45);
    check_reader::<F>(&bytes, number);
}

#[test]
fn golden_logs() {
    let torn = vec![insert(0x20, 7, None), insert(0x21, 8, None)];
    check_golden::<u64>("log-64", 1, 5, &[example(), vec![torn.clone()]].concat());
    let wide = vec![insert(u128::MAX, 0, Some("naïve café №1 🗎")), Owned::Mark(String::new(), Vec::new())];
    check_golden::<u128>("log-128", 1_000_000, 1 << 63, &[vec![wide], vec![torn]].concat());
}

#[test]
fn the_independent_reader_agrees() {
    let sound = log::<u64>(3, 7, &example(), &[0, 1]);
    let mut logs = vec![sound.clone(), log::<u64>(3, 0, &[], &[]), sound[..30].to_vec(), vec![]];
    logs.extend((40..sound.len()).step_by(29).map(|len| sound[..len].to_vec()));
    for at in (0..sound.len()).step_by(17) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        logs.push(bytes);
    }
    let places = places(&sound);
    for at in (places[1] + 8..places[2]).step_by(3) {
        let mut bytes = sound.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        seal(&mut bytes, 3, places[1], places[2]);
        // The length takes another end.
        if at >= places[1] + 12 {
            logs.push(bytes);
        }
    }
    for bytes in logs {
        if !check_reader::<u64>(&bytes, 3) {
            return;
        }
    }
    let names: Vec<Owned> = (0..500_u64).map(|i| insert(u128::from(i) << 99, i, Some("长"))).collect();
    check_reader::<u128>(&log::<u128>(3, 1, &[names], &[]), 3);
}
