use super::*;
use crate::segment::chunked_file::ChunkedFileWriter;
use crate::segment::tests::every_damage_is_found;

fn encoded(names: &[(u64, String)]) -> Vec<u8> {
    let mut writer = NameFileWriter::new(Vec::new(), Path::new("n")).unwrap();
    names.iter().for_each(|(id, name)| writer.push(*id, name.as_bytes()).unwrap());
    writer.finish().unwrap()
}

fn open(bytes: &[u8]) -> Result<NameFile> {
    NameFile::open(Path::new("n"), bytes.to_vec().into())
}

/// Ids with gaps, names with long or no prefixes shared with the previous name, and a name of the maximum length.
fn example() -> Vec<(u64, String)> {
    let mut names: Vec<_> = (0..3000_u64)
        .map(|i| (i * i, format!("https://example.org/{}/{i}", "path/".repeat((i % 13) as usize))))
        .collect();
    names.extend([(10_000_000, String::new()), (10_000_001, "x".repeat(format::MAX_NAME_BYTES))]);
    names.extend([(u64::MAX - 1, "é".to_string()), (u64::MAX, "è".to_string())]);
    names
}

#[test]
fn names_come_back() {
    let expected = example();
    for len in [0, 1, 2, expected.len()] {
        let names = open(&encoded(&expected[..len])).unwrap();
        assert!(len < 3 || names.chunks.len() > 3);
        let mut all = Vec::new();
        (0..names.chunks.len()).for_each(|chunk| names.read(chunk, &mut all).unwrap());
        assert!(all == expected[..len]);
        assert_eq!(
            names.verify(&ProgressCounter::new(None, 0), |error| panic!("{error}")).unwrap(),
            len as u64
        );
    }
    let names = open(&encoded(&expected)).unwrap();
    for (id, name) in expected.iter().step_by(97).chain(&expected[3000..]) {
        assert_eq!(names.get(*id).unwrap().as_ref(), Some(name));
    }
    assert_eq!(names.get(2).unwrap(), None);
    assert_eq!(names.get(10_000_002).unwrap(), None);
    assert_eq!(open(&encoded(&expected[5..])).unwrap().get(0).unwrap(), None);
}

#[test]
fn many_names_are_got_at_once() {
    let expected = example();
    let names = open(&encoded(&expected)).unwrap();
    let ids: Vec<u64> = (0..9000).step_by(3).chain([10_000_001, u64::MAX]).collect();
    let mut found = Vec::new();
    names.get_all(&ids, |i, name| found.push((ids[i], name))).unwrap();
    let is_wanted = |(id, _): &&(u64, String)| ids.binary_search(id).is_ok();
    assert!(found == expected.iter().filter(is_wanted).cloned().collect::<Vec<_>>());
    let wanted: HashSet<String> = [expected[7].1.clone(), "è".to_string(), "none".to_string()].into();
    let matching: Vec<u64> =
        (0..names.chunks.len()).flat_map(|chunk| names.ids_with_names(chunk, &wanted).unwrap()).collect();
    assert_eq!(matching, [49, u64::MAX]);
}

#[test]
fn long_and_unordered_values_are_refused() {
    let mut writer = NameFileWriter::new(Vec::new(), Path::new("n")).unwrap();
    let error = writer.push(1, &[b'x'; format::MAX_NAME_BYTES + 1]).unwrap_err();
    assert!(error.to_string().starts_with("the name of document 1 is 65537 bytes long"), "{error}");
    writer.push(5, b"a").unwrap();
    for id in [5, 4] {
        assert!(matches!(writer.push(id, b"b"), Err(Error::OutOfOrder { .. })));
    }
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let bytes = encoded(&example()[..5]);
    let read = |bytes: &[u8]| {
        let names = open(bytes)?;
        let mut found = Ok(());
        names.verify(&ProgressCounter::new(None, 0), |error| found = Err(error)).unwrap();
        found
    };
    every_damage_is_found(bytes, read);
}

/// Opens a name file of chunks with these keys and contents, and valid checksums.
fn file_of(chunks: &[(u64, &[u8])]) -> Result<NameFile> {
    let head = [&String::FORMAT.magic[..], &format::VERSION.to_le_bytes(), &[0; 4]].concat();
    let mut writer = ChunkedFileWriter::new(Vec::new(), Path::new("n"), &head).unwrap();
    for &(key, content) in chunks {
        writer.write(&mut [&[0; 4], content].concat(), Some(key)).unwrap();
    }
    open(&writer.finish().unwrap())
}

#[test]
fn hostile_chunks_are_refused() {
    let sound = b"\x02\0\0\0\0\0\x02ab\x03\x01\x01c";
    assert_eq!(file_of(&[(9, sound)]).unwrap().get(12).unwrap().as_deref(), Some("ac"));
    let unsound: [(&str, u64, &[u8]); 11] = [
        ("a count beyond the end", 9, b"\x03\0\0\0\0\0\x02ab\x03\x01\x01c"),
        ("bytes left over", 9, b"\x01\0\0\0\0\0\x02ab\x03\x01\x01c"),
        ("a first id that is not the key", 9, b"\x01\0\0\0\x01\0\x02ab"),
        ("the same id again", 9, b"\x02\0\0\0\0\0\x02ab\0\x01\x01c"),
        ("an id beyond 2^64", u64::MAX, b"\x02\0\0\0\0\0\x02ab\x01\x01\x01c"),
        ("more shared than there is", 9, b"\x02\0\0\0\0\0\x02ab\x03\x03\x01c"),
        ("a first name that shares", 9, b"\x01\0\0\0\0\x01\x01a"),
        ("a name beyond the end", 9, b"\x01\0\0\0\0\0\x03ab"),
        ("a number of eleven bytes", 9, b"\x01\0\0\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\0\0"),
        ("a number of 65 bits", 9, b"\x01\0\0\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\0\0"),
        ("no text", 9, b"\x01\0\0\0\0\0\x01\xff"),
    ];
    let too_long_a_name =
        [&b"\x02\0\0\0\0\0\x80\x80\x04"[..], &[b'x'; 1 << 16], b"\x01\x80\x80\x04\x01y"].concat();
    let too_long_a_chunk = [&b"\x01\0\0\0\0\0\0"[..], &[0; format::MAX_NAMES_CHUNK_BYTES]].concat();
    let long =
        [("a name that is too long", 9, &too_long_a_name[..]), ("a chunk too long", 9, &too_long_a_chunk)];
    for (what, key, content) in unsound.into_iter().chain(long) {
        let names = file_of(&[(key, content)]).unwrap();
        assert!(names.read(0, &mut Vec::new()).is_err(), "{what}");
        let mut problems = 0;
        names.verify(&ProgressCounter::new(None, 0), |_| problems += 1).unwrap();
        assert_eq!(problems, 1, "{what}");
    }
}

#[test]
fn chunks_ascend() {
    let one: &[u8] = b"\x01\0\0\0\0\0\x01a";
    let two: &[u8] = b"\x02\0\0\0\0\0\x01a\x05\0\x01b";
    assert_eq!(
        file_of(&[(1, two), (7, one)])
            .unwrap()
            .verify(&ProgressCounter::new(None, 0), |error| panic!("{error}"))
            .unwrap(),
        3
    );
    for keys in [(7, 7), (7, 6)] {
        assert!(file_of(&[(keys.0, one), (keys.1, one)]).is_err(), "{keys:?}");
    }
    // The last id of the first chunk equals the first id of the second one.
    let mut problems = Vec::new();
    file_of(&[(1, two), (6, one)])
        .unwrap()
        .verify(&ProgressCounter::new(None, 0), |error| problems.push(error))
        .unwrap();
    assert!(matches!(&problems[..], [Error::Corrupt { damage: Damage::Order { .. }, .. }]), "{problems:?}");
}

fn open_notes(bytes: &[u8]) -> Result<NoteFile> {
    NoteFile::open(Path::new("n"), bytes.to_vec().into())
}

/// Asserts that notes of arbitrary bytes are read back from several chunks, including notes of the maximum length.
#[test]
fn notes_come_back() {
    let mut expected: Vec<_> = (0..300_u64).map(|i| (i * i, vec![i as u8; (i % 7 * 90) as usize])).collect();
    let longest = vec![0xff; format::MAX_NOTE_BYTES];
    expected.extend((0..3).map(|i| (1_000_000 + i, longest.clone())));
    expected.push((u64::MAX, vec![b'\n']));
    let mut writer = NoteFileWriter::new(Vec::new(), Path::new("n")).unwrap();
    expected.iter().for_each(|(id, note)| writer.push(*id, note).unwrap());
    assert!(matches!(writer.push(u64::MAX, b""), Err(Error::OutOfOrder { .. })));
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes[8], 1);
    let notes = open_notes(&bytes).unwrap();
    assert!(notes.chunks.len() > 5);
    let mut all = Vec::new();
    (0..notes.chunks.len()).for_each(|chunk| notes.read(chunk, &mut all).unwrap());
    assert!(all == expected);
    assert_eq!(notes.verify(&ProgressCounter::new(None, 0), |error| panic!("{error}")).unwrap(), 304);
    let ids: Vec<u64> = (0..2000).chain([1_000_001, u64::MAX]).collect();
    let mut found = Vec::new();
    notes.get_all(&ids, |i, note| found.push((ids[i], note))).unwrap();
    let is_wanted = |(id, _): &&(u64, Vec<u8>)| ids.binary_search(id).is_ok();
    assert!(found == expected.iter().filter(is_wanted).cloned().collect::<Vec<_>>());
    assert_eq!((notes.get(4).unwrap(), notes.get(5).unwrap()), (Some(vec![2; 180]), None));

    let mut writer = NoteFileWriter::new(Vec::new(), Path::new("n")).unwrap();
    let error = writer.push(7, &vec![0; format::MAX_NOTE_BYTES + 1]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the note of document 7 is 16777217 bytes long; at most 16777216 are kept"),
        "{error}"
    );
}

#[test]
fn hostile_notes_are_refused() {
    let file_of = |content: &[u8]| {
        let head = [&Vec::<u8>::FORMAT.magic[..], &format::VERSION.to_le_bytes(), &[0; 4]].concat();
        let mut writer = ChunkedFileWriter::new(Vec::new(), Path::new("n"), &head).unwrap();
        writer.write(&mut [&[0; 4], content].concat(), Some(9)).unwrap();
        writer.finish().unwrap()
    };
    let sound = file_of(b"\x02\0\0\0\0\x02\0\xff\x03\x01c");
    assert_eq!(open_notes(&sound).unwrap().get(12).unwrap(), Some(b"c".to_vec()));
    let too_long = [&b"\x01\0\0\0\0\x81\x80\x80\x08"[..], &vec![0; format::MAX_NOTE_BYTES + 1]].concat();
    let too_long_a_chunk = [&b"\x01\0\0\0\0\0"[..], &vec![0; format::MAX_NOTES_CHUNK_BYTES]].concat();
    let unsound: [&[u8]; 6] = [
        b"\x03\0\0\0\0\x02ab\x03\x01c",
        b"\x01\0\0\0\0\x02ab\x03\x01c",
        b"\x02\0\0\0\0\x02ab\0\x01c",
        b"\x01\0\0\0\0\x03ab",
        &too_long,
        &too_long_a_chunk,
    ];
    for content in unsound {
        let notes = open_notes(&file_of(content)).unwrap();
        assert!(notes.read(0, &mut Vec::new()).is_err(), "{content:x?}");
    }
    for version in [0, 2, 4] {
        let mut bytes = sound.clone();
        bytes[8] = version;
        assert!(matches!(open_notes(&bytes), Err(Error::UnsupportedVersion { supported: 1, .. })));
    }
    every_damage_is_found(sound, |bytes: &[u8]| {
        let notes = open_notes(bytes)?;
        let mut found = Ok(());
        notes.verify(&ProgressCounter::new(None, 0), |error| found = Err(error)).unwrap();
        found
    });
}
