//! Tests that the encoding of logs has not changed (golden files), and that the independent reader `reader.py` reads the
//! same from a log as this crate.

use std::path::Path;
use std::process::Command;

use super::*;

/// Runs `reader.py` on a log, and returns its output or error message. Returns `None` if Python is missing, which
/// is a failure on CI.
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

/// Output lines that `reader.py` should print for the records of a log. Texts must not have control characters.
fn lines<F: Fingerprint>(batches: &NumberedBatches) -> String {
    let mut text = String::new();
    let hex = |fingerprint: &u128| F::from_u128(*fingerprint).to_hex();
    for (sequence, operation) in
        batches.iter().flat_map(|(sequence, all)| all.iter().map(move |o| (sequence, o)))
    {
        text += &match operation {
            OwnedOperation::Insert(fingerprint, id, None) => {
                format!("{sequence}\tinsert\t{}\t{id}\n", hex(fingerprint))
            }
            OwnedOperation::Insert(fingerprint, id, Some(name)) => {
                format!("{sequence}\tinsert\t{}\t{id}\t{name}\n", hex(fingerprint))
            }
            OwnedOperation::Delete(fingerprint, id) => {
                format!("{sequence}\tdelete\t{}\t{id}\n", hex(fingerprint))
            }
            OwnedOperation::Metadata(key, value) => {
                let value: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{sequence}\tmetadata\t{key}\t{value}\n")
            }
            OwnedOperation::Note(id, note) => {
                let note: String = note.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{sequence}\tnote\t{id}\t{note}\n")
            }
        };
    }
    text
}

/// Asserts that this crate and `reader.py` read the same from a log. Returns whether Python was found.
fn check_reader<F: Fingerprint>(bytes: &[u8], number: u64) -> bool {
    let Some(output) = run_reader(bytes, number) else { return false };
    match (read::<F>(bytes, number), output) {
        (Ok(Some((end, batches))), Ok(text)) => {
            let (bits, header, sound, torn) = (F::BITS, end.header, end.sound_bytes, end.torn_bytes);
            let first = header.first_sequence;
            let PreviousLog { number: previous, len } =
                header.previous.unwrap_or(PreviousLog { number: 0, len: 0 });
            let closed = if end.closed { "True" } else { "False" };
            let header = format!(
                "number: {number}\nbits: {bits}\nfirst sequence: {first}\nprevious: {previous}\n\
                 previous length: {len}\nsound: {sound}\nclosed: {closed}\ntorn: {torn}\n"
            );
            assert_eq!(text, header + &lines::<F>(&batches));
        }
        (Ok(None), Ok(text)) => assert!(text.contains("first sequence: None\n"), "{text}"),
        (Err(_), Err(problem)) => assert_eq!(problem.lines().count(), 1, "{problem}"),
        (ours, theirs) => panic!("{ours:?}, but reader.py: {theirs:?}"),
    }
    true
}

/// Asserts that a log is equal to its golden file, and is read correctly. `torn` is the number of bytes after the
/// log's sound records. `UPDATE_GOLDEN=1 cargo test --lib wal` rewrites the golden logs.
fn check_golden<F: Fingerprint>(name: &str, number: u64, bytes: &[u8], batches: &NumberedBatches, torn: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/golden").join(name);
    let path = folder.join(format!("{number:06}.log"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == bytes, "{name} is written differently now");
    let (end, found) = read::<F>(bytes, number).unwrap().unwrap();
    assert_eq!((&found, end.torn_bytes), (batches, torn));
    check_reader::<F>(bytes, number);
}

/// A log whose last record is torn, and the batches before that record.
fn torn_log<F: Fingerprint>(
    number: u64,
    first: u64,
    batches: &[Vec<OwnedOperation>],
) -> (Vec<u8>, NumberedBatches) {
    let mut bytes = log::<F>(number, first, batches, &[0]);
    let last = batches.len() - 1;
    bytes.truncate(record_offsets(&bytes)[last] + 45);
    (bytes, numbered(first, &batches[..last]))
}

#[test]
fn golden_logs() {
    let torn = vec![insert(0x20, 7, None), insert(0x21, 8, None)];
    let (bytes, found) = torn_log::<u64>(1, 5, &[example(), vec![torn.clone()]].concat());
    check_golden::<u64>("log-64", 1, &bytes, &found, 45);
    let previous = PreviousLog { number: 1, len: bytes.len() as u64 - 45 };
    let after = [vec![OwnedOperation::Delete(0x13, 2)]];
    let bytes = log_after::<u64>(Some(previous), 2, 8, &after, &[], true);
    check_golden::<u64>("log-64", 2, &bytes, &numbered(8, &after), 0);
    let wide = vec![
        insert(u128::MAX, 0, Some("naïve café №1 🗎")),
        OwnedOperation::Metadata(String::new(), Vec::new()),
    ];
    let (bytes, found) = torn_log::<u128>(1_000_000, 1 << 63, &[vec![wide], vec![torn]].concat());
    check_golden::<u128>("log-128", 1_000_000, &bytes, &found, 45);
}

#[test]
fn the_independent_reader_agrees() {
    let sound = log::<u64>(3, 7, &example(), &[0, 1]);
    let mut logs = vec![sound.clone(), log::<u64>(3, 0, &[], &[]), sound[..30].to_vec(), vec![]];
    let previous = Some(PreviousLog { number: 2, len: 64 });
    let closed = log_after::<u64>(previous, 3, 7, &example(), &[0], true);
    logs.extend([closed.clone(), [&closed[..], b"more"].concat()]);
    logs.extend((40..sound.len()).step_by(29).map(|len| sound[..len].to_vec()));
    for sound in [&sound, &closed] {
        for at in (0..sound.len()).step_by(17) {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << (at % 8);
            logs.push(bytes);
        }
    }
    // Changed fields of the header and of an end record, with valid checksums.
    for at in log_header::VERSION..log_header::CRC {
        let mut bytes = closed.clone();
        bytes[at] ^= 1;
        let crc = crc32fast::hash(&bytes[..log_header::CRC]);
        bytes[log_header::CRC..][..4].copy_from_slice(&crc.to_le_bytes());
        logs.push(bytes);
    }
    for at in closed.len() - 24..closed.len() {
        let mut bytes = closed.clone();
        bytes[at] ^= 1;
        seal(&mut bytes, 3, closed.len() - 32, closed.len());
        logs.push(bytes);
    }
    let offsets = record_offsets(&sound);
    for at in (offsets[1] + 8..offsets[2]).step_by(3) {
        let mut bytes = sound.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        seal(&mut bytes, 3, offsets[1], offsets[2]);
        // A changed length would need a checksum up to another end.
        if at >= offsets[1] + 12 {
            logs.push(bytes);
        }
    }
    for bytes in logs {
        if !check_reader::<u64>(&bytes, 3) {
            return;
        }
    }
    let names: Vec<OwnedOperation> =
        (0..500_u64).map(|i| insert(u128::from(i) << 99, i, Some("长"))).collect();
    check_reader::<u128>(&log::<u128>(3, 1, &[names], &[]), 3);
    let mut noted = log::<u64>(
        3,
        1,
        &[vec![OwnedOperation::Note(1, vec![0, 255]), OwnedOperation::Note(u64::MAX, vec![9; 1 << 24])]],
        &[],
    );
    check_reader::<u64>(&noted, 3);
    noted[log_header::VERSION] = 3;
    let crc = crc32fast::hash(&noted[..log_header::CRC]);
    noted[log_header::CRC..][..4].copy_from_slice(&crc.to_le_bytes());
    check_reader::<u64>(&noted, 3);
}
