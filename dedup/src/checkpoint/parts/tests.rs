//! Tests that a file read in sections gives the same result as a file read in one go.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use proptest::prelude::*;
use simstore::{Error, Result};
use simstore_text::Profile;

use crate::checkpoint::parts::PartFolder;
use crate::checkpoint::parts::work_shard::{PartCounts, WorkShard};
use simstore_corpus::Diagnostic;
use simstore_corpus::{InputCounts, Inputs, Item, Observer};
use simstore_io::DocumentOptions;
use simstore_io::output::UnfinishedOutputs;

/// Documents, counts and messages that reading input files gives.
#[derive(Debug, Default, PartialEq)]
struct ReadResult {
    items: Vec<String>,
    counts: Option<InputCounts>,
    /// Messages about malformed documents. They appear when a part is made, but not when it is used again.
    malformed: Vec<String>,
    failure: Option<String>,
}

#[derive(Default)]
struct MalformedLog(Mutex<Vec<String>>);

impl Observer for MalformedLog {
    fn diagnostic(&self, notice: &Diagnostic<'_>) {
        if let Diagnostic::Malformed(error) = notice {
            self.0.lock().unwrap().push(error.to_string());
        }
    }
}

impl MalformedLog {
    fn malformed(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn push(read: &mut ReadResult, item: &Item<u64>) {
    let Item { id, fingerprint, text_bytes, extra, position, path, line, checksum, .. } = item;
    let item = (id, fingerprint, text_bytes, item.replacements, extra, position, path, line, checksum);
    read.items.push(format!("{item:?} {:?}", (&item.4, &item.3)));
}

fn ended(mut read: ReadResult, counts: Result<InputCounts>, log: &MalformedLog) -> ReadResult {
    match counts {
        Ok(counts) => read.counts = Some(counts),
        Err(error) => read.failure = Some(error.to_string()),
    }
    read.malformed = log.malformed();
    read
}

fn in_one_go(inputs: &Inputs) -> ReadResult {
    let (mut read, log) = (ReadResult::default(), MalformedLog::default());
    let counts = inputs.visit_documents(&Profile::default(), &log, |item| {
        push(&mut read, &item);
        Ok(())
    });
    ended(read, counts, &log)
}

fn in_parts(
    inputs: &Inputs,
    folder: &Path,
    section: u64,
    shard: Option<WorkShard>,
) -> (ReadResult, PartCounts) {
    let (mut read, log, mut tally) = (ReadResult::default(), MalformedLog::default(), PartCounts::default());
    let parts = PartFolder {
        folder,
        shard,
        inputs,
        profile: &Profile::default(),
        min_hasher: None,
        section_bytes: Some(section),
        unfinished: &UnfinishedOutputs::default(),
        observer: &log,
    };
    let counts = parts.visit(|item| {
        push(&mut read, &item);
        Ok(())
    });
    let counts = counts.map(|(counts, parts)| {
        tally = parts;
        counts
    });
    (ended(read, counts, &log), tally)
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.sort();
    parts
}

/// Compares four ways to read files: in one go, in sections of this size, from the parts of an earlier run,
/// and on several machines. Returns the number of parts.
fn check(paths: &[PathBuf], options: &DocumentOptions, section: u64, machines: usize) -> u64 {
    let inputs = Inputs::new(paths, options.clone()).unwrap().skip_malformed(true);
    let folder = tempfile::tempdir().unwrap();
    let whole = in_one_go(&inputs);
    let alone = folder.path().join("alone");
    let (first, made) = in_parts(&inputs, &alone, section, None);
    assert_eq!(first, whole);
    assert_eq!(made.reused, 0);
    let known = ReadResult { malformed: Vec::new(), ..whole };
    let (again, tally) = in_parts(&inputs, &alone, section, None);
    assert_eq!((&again, tally.reused, tally.made), (&known, made.made, 0));
    // Simulates an interrupted run. The new modification time makes the run compare the contents of the files.
    for part in parts(&alone).iter().step_by(2) {
        fs::remove_file(part).unwrap();
    }
    for path in paths {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
    }
    let (rest, tally) = in_parts(&inputs, &alone, section, None);
    assert_eq!((&rest.items, rest.counts), (&known.items, known.counts));
    assert_eq!(tally.reused + tally.made, made.made);

    let (all, mut malformed) = (folder.path().join("all"), Vec::new());
    fs::create_dir(&all).unwrap();
    for number in 1..=machines {
        let shard_folder = folder.path().join(number.to_string());
        let (log, tally) =
            in_parts(&inputs, &shard_folder, section, Some(WorkShard { number, count: machines }));
        assert!(log.items.is_empty() && log.failure.is_none(), "{log:?}");
        malformed.extend(log.malformed);
        let parts = parts(&shard_folder);
        assert_eq!(parts.len() as u64, tally.made);
        for part in parts {
            fs::copy(&part, all.join(part.file_name().unwrap())).unwrap();
        }
    }
    let (joined, tally) = in_parts(&inputs, &all, section, None);
    assert_eq!((&joined, tally.reused, tally.made), (&known, made.made, 0));
    malformed.sort();
    let mut expected = first.malformed;
    expected.sort();
    // Reading may end in the middle of a malformed file. A machine also reads sections after that point, so
    // it may report more.
    assert!(expected.iter().all(|log| malformed.contains(log)), "{malformed:?}, expected {expected:?}");
    made.made
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses bytes to a block like those that bgzip writes: a gzip member whose header has its compressed length.
fn bgzf(bytes: &[u8]) -> Vec<u8> {
    let with_length = |length: u16| {
        let mut extra = b"BC\x02\x00".to_vec();
        extra.extend(length.to_le_bytes());
        let mut encoder =
            flate2::GzBuilder::new().extra(extra).write(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    with_length(u16::try_from(with_length(0).len() - 1).unwrap())
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    // Some parallel compressors write a skippable frame before each frame.
    [&b"\x50\x2a\x4d\x18\x04\0\0\0\x01\x02\x03\x04"[..], &zstd::encode_all(bytes, 1).unwrap()].concat()
}

/// Cuts bytes into pieces whose lengths are `lengths`, repeated in a cycle. Compresses each piece by `pack`, and
/// concatenates the results.
fn packed(bytes: &[u8], lengths: &[usize], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (mut packed, mut at) = (Vec::new(), 0);
    for &length in lengths.iter().cycle() {
        let end = bytes.len().min(at + length);
        packed.extend(pack(&bytes[at..end]));
        at = end;
        if at == bytes.len() {
            return packed;
        }
    }
    packed
}

/// Generates contents of JSON Lines files with valid, blank and malformed lines. The last line may lack its line
/// feed.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let words = || proptest::collection::vec("[a-z]{1,4}|é|相似", 1..12).prop_map(|words| words.join(" "));
    let line = prop_oneof![
        6 => words().prop_map(|text| format!("{{\"text\": \"{text}\"}}\n")),
        4 => (0..9_u64, words()).prop_map(|(id, text)| format!("{{\"id\": {id}, \"text\": \"{text}\"}}\n")),
        2 => words().prop_map(|text| format!("{{\"text\": \"{text}\"}}\r\n")),
        2 => prop_oneof![Just("\n"), Just("\r\n"), Just(" \n\n\n")].prop_map(str::to_owned),
        1 => prop_oneof![Just("no JSON\n"), Just("[1]\n"), Just("{\"text\": 7}\n")].prop_map(str::to_owned),
        1 => (300..3000_usize).prop_map(|length| format!("{{\"text\": \"{}\"}}\n", "x ".repeat(length))),
    ];
    let first = "{\"text\": \"the first\"}\n";
    (proptest::collection::vec(line, 1..80), any::<bool>()).prop_map(move |(lines, is_cut)| {
        let mut bytes = [first.to_owned(), lines.concat()].concat().into_bytes();
        if is_cut {
            bytes.pop();
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn sections_are_the_whole(
        content in lines(),
        (is_marked, form) in (any::<bool>(), 0..5),
        (section, machines) in (30..2000_u64, 1..4_usize),
        lengths in proptest::collection::vec(1..500_usize, 1..6),
        max_bytes in prop_oneof![Just(1 << 20), Just(900)],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let content = if is_marked { [&b"\xef\xbb\xbf"[..], &content].concat() } else { content };
        let (name, bytes) = match form {
            0 | 1 => ("a.jsonl", content),
            2 => ("a.jsonl.gz", packed(&content, &lengths, |bytes| gzip(bytes, 6))),
            3 => ("a.jsonl.gz", packed(&content, &lengths, bgzf)),
            _ => ("a.jsonl.zst", packed(&content, &lengths, frame)),
        };
        let path = folder.path().join(name);
        // At most about 40 parts.
        let section = section.max(bytes.len() as u64 / 40);
        fs::write(&path, bytes).unwrap();
        let other = folder.path().join("b.jsonl");
        fs::write(&other, "{\"text\": \"another file\"}\n").unwrap();
        check(&[path, other], &DocumentOptions { max_bytes, ..DocumentOptions::default() }, section, machines);
    }
}

fn numbered(from: usize, count: usize) -> String {
    (from..from + count).map(|i| format!("{{\"text\": \"document {i} of them\"}}\n")).collect()
}

/// Writes a file, and checks that all ways to read it give the same result. Returns the number of its parts for
/// sections of `section` bytes.
fn part_count_of(name: &str, bytes: impl AsRef<[u8]>, section: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    check(&[path], &DocumentOptions::default(), section, 3)
}

#[test]
fn files_are_divided_where_they_can_be() {
    let text = numbered(0, 200);
    let bytes = text.as_bytes();
    assert_eq!(part_count_of("a.jsonl", bytes, 1000), bytes.len().div_ceil(1000) as u64);
    assert_eq!(part_count_of("a.jsonl", bytes, bytes.len() as u64), 1);
    let members = packed(bytes, &[100, 77], bgzf);
    assert!(part_count_of("a.jsonl.gz", &members, members.len() as u64 / 8) >= 8);
    let frames = packed(bytes, &[100, 77], frame);
    assert!(part_count_of("a.jsonl.zst", &frames, frames.len() as u64 / 8) >= 8);
    // A file is one part if it is a single member or frame, or cannot be read from the middle.
    assert_eq!(part_count_of("a.jsonl.gz", gzip(bytes, 6), 100), 1);
    assert_eq!(part_count_of("a.jsonl.zst", frame(bytes), 100), 1);
    let array = format!("[{}]", text.trim_end().replace('\n', ",\n"));
    assert_eq!(part_count_of("a.json", array, 100), 1);
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert_eq!(part_count_of("a.jsonl", utf16, 100), 1);
    let table: String = (0..100).map(|i| format!("{i},\"two\nlines\"\n")).collect();
    assert_eq!(part_count_of("a.csv", format!("id,text\n{table}"), 100), 1);
    assert_eq!(part_count_of("a.jsonl.bz2", bzip2(bytes), 100), 1);
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    archive.append_data(&mut header, "inside.jsonl", bytes).unwrap();
    assert_eq!(part_count_without_locations("a.tar", &archive.into_inner().unwrap(), 100), 1);
    // Documents without a text field are malformed one by one: they do not end the file.
    let late = [&"{\"other\": 1}\n".repeat(200), &text].map(String::as_str).concat();
    assert!(part_count_of("a.jsonl", late, 1000) > 1);
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_record_longer_than_sections_is_read_once() {
    let long = format!("{{\"text\": \"{}\"}}\n", "very long ".repeat(2000));
    let text = [numbered(0, 20), long.clone(), numbered(20, 20), long.trim_end().to_owned()].concat();
    assert!(part_count_of("a.jsonl", &text, 2000) > 18);
    let members = packed(text.as_bytes(), &[90], bgzf);
    assert!(part_count_of("a.jsonl.gz", &members, members.len() as u64 / 20) > 8);
}

/// Reading a file in sections gives the same documents as reading it whole, even if the encoding changes somewhere in
/// the file, or a single character is malformed.
#[test]
fn an_encoding_is_judged_once() {
    let gbk: Vec<u8> =
        encoding_rs::GBK.encode(&"{\"text\": \"相似的文档具有相似的指纹\"}\n".repeat(20)).0.into_owned();
    let ascii = numbered(0, 300).into_bytes();
    let utf8 = "{\"text\": \"相似的\"}\n".as_bytes();
    for content in [
        [&ascii[..], &gbk, &ascii].concat(),
        [&ascii, utf8, &ascii, &gbk, &ascii].concat(),
        [&ascii, &b"{\"text\": \"a\xffb\"}\n"[..], &ascii, &gbk].concat(),
        [&ascii[..100], utf8, &gbk, &gbk].concat(),
    ] {
        part_count_of("a.jsonl", &content, 1500);
        let members = packed(&content, &[300], |bytes| gzip(bytes, 6));
        part_count_of("a.jsonl.gz", &members, members.len() as u64 / 10);
    }
    assert!(part_count_of("a.jsonl", [&ascii[..], &gbk].concat(), 1500) > 6);
    // A malformed character in a short section, but with much ASCII before it.
    let rare = [&ascii[..], b"{\"text\": \"a\xffb\"}\n", &ascii[..390]].concat();
    assert!(part_count_of("a.jsonl", rare, 3000) >= 4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, [&ascii[..], &gbk].concat()).unwrap();
    let options = DocumentOptions { encoding: "gbk".parse().unwrap(), ..DocumentOptions::default() };
    assert!(check(&[path], &options, 1500, 2) > 6);
}

#[test]
fn damaged_members_end_a_file() {
    let text = numbered(0, 400);
    for (name, packed) in [
        ("a.jsonl.gz", packed(text.as_bytes(), &[700], bgzf)),
        ("a.jsonl.zst", packed(text.as_bytes(), &[700], frame)),
    ] {
        let section = packed.len() as u64 / 12;
        let whole = part_count_of(name, &packed, section);
        assert!(whole >= 8);
        // A truncated file, then a file with other bytes at the end.
        part_count_of(name, &packed[..packed.len() - 20], section);
        part_count_of(name, [&packed[..], b"something else"].concat(), section);
        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 40].fill(0xaa);
        let parts = part_count_without_locations(name, &damaged, section);
        assert!(parts < whole, "{parts} of {whole}");
    }
}

/// Reads a file in one go and in sections. Compares the documents and counts, but not the messages, which may give
/// different locations for the same damage. Returns the number of parts.
fn part_count_without_locations(name: &str, bytes: &[u8], section: u64) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let inputs = Inputs::new(&[path], DocumentOptions::default()).unwrap().skip_malformed(true);
    let whole = in_one_go(&inputs);
    let (read, tally) = in_parts(&inputs, &folder.path().join("parts"), section, None);
    assert_eq!((read.items, read.counts), (whole.items, whole.counts));
    tally.made
}

/// A file is not divided at bytes that look like the start of a gzip member but lie inside another gzip member.
#[test]
fn a_border_that_is_none_is_not_believed() {
    let inner = gzip(&vec![b' '; 200_000], 6);
    let text = numbered(0, 2000);
    let content = [text.as_bytes(), &inner.repeat(3), b"\n", text.as_bytes()].concat();
    let first = gzip(text.as_bytes(), 0);
    let file = [&first[..], &gzip(&content, 0), &gzip(text.as_bytes(), 0)].concat();
    let section = file.len() as u64 / 20;
    let parts = part_count_without_locations("a.jsonl.gz", &file, section);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl.gz");
    fs::write(&path, &file).unwrap();
    let borders =
        simstore_io::bytes::section_boundaries(&path, simstore_io::Compression::Gzip, file.len() as u64, 20)
            .unwrap();
    let nested = (first.len() + text.len()) as u64;
    assert!(borders.iter().any(|&border| (nested..nested + 5000).contains(&border)), "{borders:?}");
    assert!(parts < 1 + borders.len() as u64, "{parts}, {borders:?}");
    check(&[path], &DocumentOptions::default(), section, 3);
}

#[test]
fn an_error_tells_the_line_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, [&numbered(0, 300), "no JSON\n", &numbered(300, 100)].concat()).unwrap();
    let inputs = Inputs::new(&[path], DocumentOptions::default()).unwrap();
    let failures: Vec<String> =
        [None, Some(WorkShard { number: 1, count: 2 }), Some(WorkShard { number: 2, count: 2 })]
            .into_iter()
            .filter_map(|shard| in_parts(&inputs, &folder.path().join("parts"), 1000, shard).0.failure)
            .collect();
    assert!(failures.len() >= 2 && failures.iter().all(|failure| failure.contains(":301:")), "{failures:?}");
    assert_eq!(Some(&failures[0]), in_one_go(&inputs).failure.as_ref());
}

#[test]
fn a_section_that_has_changed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let text = numbered(1_000_000, 6000);
    fs::write(&path, &text).unwrap();
    let inputs = Inputs::new(std::slice::from_ref(&path), DocumentOptions::default()).unwrap();
    let parts = folder.path().join("parts");
    let (_, made) = in_parts(&inputs, &parts, 20_000, None);
    assert!(made.made > 10);
    // First a document changes in the middle of a section. Then a line break is added in one place, and a
    // character is removed in another.
    let other = text.replacen("document 1003000 of", "document 1003xxx of", 1);
    let moved = other.replacen("1003100 of them\"}\n", "1003100 of them\"}\n\n", 1);
    let moved = moved.replacen("1003200 of them\"}\n", "1003200 of the\"}\n", 1);
    for changed in [other, moved] {
        assert_eq!(changed.len(), text.len());
        fs::write(&path, &changed).unwrap();
        let (read, tally) = in_parts(&inputs, &parts, 20_000, None);
        assert!((1..=2).contains(&tally.made), "{tally:?}");
        let whole = in_one_go(&inputs);
        assert_eq!((read.items, read.counts), (whole.items, whole.counts));
    }
}

#[cfg(feature = "parquet")]
#[test]
fn row_groups_are_the_whole() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    let texts: Vec<Option<String>> =
        (0..1000).map(|i| (i % 7 > 0).then(|| format!("row {i} of many, {}", "x".repeat(i % 50)))).collect();
    let column: ArrayRef = Arc::new(StringArray::from(texts));
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    for group in [1, 37, 300, 1000] {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let parts = part_count_of("a.parquet", &bytes, bytes.len() as u64 / 6);
        let groups = 1000_u64.div_ceil(group as u64);
        assert!(parts <= groups && parts >= groups.min(4), "{group}: {parts}");
        // An unreadable row group is reported, and no other row group is lost.
        let middle = bytes.len() / 3;
        bytes[middle..middle + 30].fill(0xff);
        part_count_of("a.parquet", &bytes, bytes.len() as u64 / 6);
    }
}

#[test]
fn parts_of_whole_files_keep_their_names() {
    let header = |section| crate::checkpoint::parts::PartHeader {
        part: crate::checkpoint::parts::header::VERSION,
        bits: 64,
        profile: "auto".to_owned(),
        bands: None,
        id_field: None,
        text_fields: vec!["text".to_owned()],
        extra_field: None,
        format: None,
        delimiter: None,
        encoding: "auto".to_owned(),
        max_bytes: 1 << 30,
        skip_bad: false,
        files: Vec::new(),
        section,
    };
    let name = |section| header(section).path(Path::new("")).unwrap();
    assert_eq!(name(None), Path::new("97975b8937f14e79.part.zst"));
    assert_ne!(name(None), name(Some([0, 7])));
    let text =
        String::from_utf8(crate::checkpoint::checksummed_file::to_json_line(&header(None)).unwrap()).unwrap();
    assert!(!text.contains("section"), "{text}");
    assert!(matches!("0/3".parse::<WorkShard>(), Err(Error::BadArgument(_))));
}
