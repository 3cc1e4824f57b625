//! Forged stores that break the format's rules for logs.

use super::forging::{SpecPage, file_name, put, put_segment, segments, whole_store, without_ids};
use crate::support::seal::{StoreFiles, seal_store};

/// A record of a forged log. The checksum is not a field: it covers the offset of the record, so it is computed when
/// the log is encoded.
#[derive(Clone)]
struct ForgedRecord {
    sequence: u64,
    durable: u64,
    payload: Vec<u8>,
    reserved: u8,
    padding: u8,
}

/// A forged log: the header fields that tests change, and the records.
#[derive(Clone)]
struct ForgedLog {
    bits: u8,
    number: u64,
    first_sequence: u64,
    previous: (u64, u64),
    records: Vec<ForgedRecord>,
}

impl ForgedLog {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 56];
        put(&mut bytes, 0, b"simstlog");
        (bytes[8], bytes[12]) = (1, self.bits);
        for (at, field) in
            [(16, self.number), (24, self.first_sequence), (32, self.previous.0), (40, self.previous.1)]
        {
            put(&mut bytes, at, &field.to_le_bytes());
        }
        seal_header(&mut bytes);
        for record in &self.records {
            let at = bytes.len();
            bytes.extend(b"\xf7rec\0\0\0\0");
            bytes.extend((record.payload.len() as u32).to_le_bytes());
            bytes.extend([record.reserved, 0, 0, 0]);
            bytes.extend(record.sequence.to_le_bytes());
            bytes.extend(record.durable.to_le_bytes());
            bytes.extend(&record.payload);
            while !bytes.len().is_multiple_of(8) {
                bytes.push(record.padding);
            }
            let mut crc = crc32fast::Hasher::new();
            crc.update(&self.number.to_le_bytes());
            crc.update(&(at as u64).to_le_bytes());
            crc.update(&bytes[at + 8..]);
            put(&mut bytes, at + 4, &crc.finalize().to_le_bytes());
        }
        bytes
    }
}

fn seal_header(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..52]);
    put(bytes, 52, &crc.to_le_bytes());
}

fn insert(fingerprint: u64, id: u64) -> Vec<u8> {
    [&[1][..], &fingerprint.to_le_bytes(), &id.to_le_bytes()].concat()
}

/// Encodes an operation of a log record: the bytes `start`, then for each text its length and the text.
fn with_text(start: &[u8], texts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = start.to_vec();
    for text in texts {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(*text);
    }
    bytes
}

/// A store whose only log is replaced with a forged log of two records. Tests change this log so that it breaks a rule.
struct LogBase {
    files: StoreFiles,
    name: String,
    log: ForgedLog,
}

impl LogBase {
    fn new() -> LogBase {
        LogBase::of(whole_store())
    }

    fn of(files: StoreFiles) -> LogBase {
        let ids = files["MANIFEST"][15] & 1;
        let name = file_name(&files, ".log");
        let field = |at: usize| u64::from_le_bytes(files["MANIFEST"][at..at + 8].try_into().unwrap());
        let (number, sequence) = (field(32), field(40));
        let record =
            |sequence, payload| ForgedRecord { sequence, durable: 0, payload, reserved: 0, padding: 0 };
        let log = ForgedLog {
            bits: 64,
            number,
            first_sequence: sequence,
            previous: (0, 0),
            records: match ids {
                0 => vec![record(sequence, insert(0x50, 0)), record(sequence + 1, insert(0x60, 0))],
                _ => vec![
                    record(sequence, insert(0x50, 11)),
                    record(sequence + 1, with_text(&insert_named(0x60, 12), &[b"name"])),
                ],
            },
        };
        LogBase { files, name, log }
    }

    /// Returns the number of the second segment, as in the names of its files.
    fn second_segment(&self) -> String {
        let manifest = &self.files["MANIFEST"];
        let at = segments(manifest)[1];
        format!("{:06}", u64::from_le_bytes(manifest[at..at + 8].try_into().unwrap()))
    }

    fn with(&self, bytes: Vec<u8>) -> StoreFiles {
        let mut files = self.files.clone();
        files.insert(self.name.clone(), bytes);
        files
    }

    /// Returns the files of the store, with its log changed by `change`.
    fn changed(&self, change: impl FnOnce(&mut ForgedLog)) -> StoreFiles {
        let mut log = self.log.clone();
        change(&mut log);
        self.with(log.bytes())
    }

    /// Returns the files of the store, with a second log after the first one. `change` changes the second log.
    fn followed(&self, change: impl FnOnce(&mut ForgedLog)) -> StoreFiles {
        let mut next = self.log.clone();
        next.previous = (self.log.number, self.log.bytes().len() as u64);
        // No segment has this number.
        next.number += 10;
        next.first_sequence += 2;
        next.records.truncate(1);
        next.records[0].sequence += 2;
        change(&mut next);
        let mut files = self.with(self.log.bytes());
        files.insert(format!("{:06}.log", next.number), next.bytes());
        files
    }
}

fn insert_named(fingerprint: u64, id: u64) -> Vec<u8> {
    let mut bytes = insert(fingerprint, id);
    bytes[0] = 2;
    bytes
}

/// Returns the valid stores of which this module makes changed copies that break a rule.
pub(super) fn sound() -> Vec<StoreFiles> {
    let bases = [LogBase::new(), LogBase::of(without_ids())];
    bases.iter().flat_map(|base| [base.changed(|_| ()), base.followed(|_| ())]).collect()
}

pub(super) fn page() -> SpecPage {
    let (base, mut page) = (LogBase::new(), SpecPage::new("log.md"));
    header(&base, &mut page);
    records(&base, &mut page);
    page
}

fn header(base: &LogBase, page: &mut SpecPage) {
    let mut other = base.log.bytes();
    other[0] = b'S';
    page.add("header-magic", "another", "another kind of file", base.with(other));
    page.add("width", "128 bits", "128", base.changed(|log| log.bits = 128));
    page.add("width", "32 bits", "bits is 32", base.changed(|log| log.bits = 32));
    let message = "the number of the log and the name of its file";
    page.add("number", "another", message, base.changed(|log| log.number += 1));
    let message = "first sequence is";
    page.add("first-sequence", "2^63 + 1", message, base.changed(|log| log.first_sequence = (1 << 63) + 1));
    let number = base.log.number;
    page.add("previous", "its own", "previous is", base.changed(|log| log.previous = (number, 56)));
    for (variant, previous) in
        [("57", (1, 57)), ("48", (1, 48)), ("56 without a previous log", (0, 56)), ("0 with one", (1, 0))]
    {
        page.add(
            "previous-length",
            variant,
            "previous length is",
            base.changed(|log| log.previous = previous),
        );
    }
    let message = "the header of this log and its checksum";
    let mut log = base.log.clone();
    log.records.clear();
    let header = log.bytes();
    page.add("damaged-header", "cut short", message, base.with(header[..20].to_vec()));
    page.add("damaged-header", "no bytes", message, base.with(Vec::new()));
    page.add("damaged-header", "all zero", message, base.with(vec![0; 56]));
    let mut wrong = header;
    wrong[30] ^= 1;
    page.add("damaged-header", "a wrong checksum", message, base.with(wrong));

    let message = "the sound part of this log and what the next log says was synced of it";
    page.add("next-log", "ends behind", message, base.followed(|next| next.previous.1 -= 8));
    page.add("next-log", "ends before", message, base.followed(|next| next.previous.1 += 8));
    page.add(
        "missing-log",
        "between two",
        "open",
        base.followed(|next| {
            (next.previous.0, next.number) = (next.number, next.number + 1);
        }),
    );
    let mut files = base.files.clone();
    files.remove(&base.name);
    page.add("missing-log", "the first", "open", files);
    let message = "the log that this one names as the one before it";
    page.add("previous-log", "an older one", message, base.followed(|next| next.previous = (1, 56)));
    page.add("previous-log", "none", message, base.followed(|next| next.previous = (0, 0)));
    let message = "the records of this log and of what comes before it";
    page.add(
        "sequence",
        "of the first log",
        message,
        base.changed(|log| {
            log.first_sequence += 1;
            log.records.iter_mut().for_each(|record| record.sequence += 1);
        }),
    );
    page.add(
        "sequence",
        "of the next log",
        message,
        base.followed(|next| {
            next.first_sequence += 1;
            next.records[0].sequence += 1;
        }),
    );
}

fn records(base: &LogBase, page: &mut SpecPage) {
    let start = 56 + base.log.records[0].payload.len().next_multiple_of(8) as u64 + 32;
    let mut synced = base.changed(|log| log.records[1].durable = start);
    let log = synced.get_mut(&base.name).unwrap();
    log[56 + 40] ^= 1;
    page.add("synced", "a later record says so", "checksum of the record", synced);
    let mut torn = base.log.bytes();
    torn.extend(b"torn");
    page.add("torn-tail", "four bytes", "bytes", base.with(torn));
    let message = "reserved is 1";
    // This is the rule `reserved` of README.md, but only records have these bytes.
    page.add("padding", "reserved bytes", message, base.changed(|log| log.records[0].reserved = 1));
    page.add("padding", "of 1", message, base.changed(|log| log.records[0].padding = 1));
    page.add("durable", "above the offset", "durable is 57", base.changed(|log| log.records[0].durable = 57));
    page.add(
        "durable",
        "below that of an end record",
        "durable is 56",
        base.changed(|log| {
            log.records[1].payload.clear();
            log.records[1].durable = 56;
        }),
    );
    let mut payload = |rule, variant: &str, message, payload: Vec<u8>| {
        page.add(
            rule,
            variant,
            message,
            base.changed(|log| {
                log.records[1].payload = payload;
            }),
        );
    };
    let note = [&[5][..], &[0; 8]].concat();
    payload("kind", "0", "kind is 0", vec![0; 17]);
    payload("kind", "6", "kind is 6", vec![6; 17]);
    payload("cut-operation", "an insert", "cut short", insert(1, 1)[..16].to_vec());
    payload("cut-operation", "a name", "cut short", insert_named(1, 1));
    let mut beyond = with_text(&insert_named(1, 1), &[b"name"]);
    beyond.pop();
    payload("cut-operation", "a name that is longer than the rest", "cut short", beyond);
    payload("long-text", "a name", "length is 65537", with_text(&insert_named(1, 1), &[&[b'a'; 65537]]));
    payload("long-text", "a key", "length is 4097", with_text(&[4], &[&[b'a'; 4097], b""]));
    payload("long-text", "a metadata value", "length is 4097", with_text(&[4], &[b"", &[1; 4097]]));
    payload("long-text", "a note", "length is 16777217", with_text(&note, &[&vec![1; (1 << 24) + 1]]));
    payload("utf-8", "a name", "text is", with_text(&insert_named(1, 1), &[b"\xff"]));
    payload("utf-8", "a key", "text is", with_text(&[4], &[b"\xff", b""]));
    in_a_store_without_ids(page);
}

/// Adds logs with operations that only a store with ids may have.
fn in_a_store_without_ids(page: &mut SpecPage) {
    let base = LogBase::of(without_ids());
    let mut payload = |rule, variant: &str, message, payload: Vec<u8>| {
        page.add(rule, variant, message, base.changed(|log| log.records[1].payload = payload));
    };
    let mut delete = insert(0x50, 1);
    delete[0] = 3;
    payload("id", "an insert", "id is 1", insert(0x50, 1));
    payload("id", "a delete", "id is 1", delete);
    let message = "1, 3 or 4 in a store without ids";
    payload("kind", "a name without ids", message, with_text(&insert_named(0x50, 0), &[b"name"]));
    payload("kind", "a note without ids", message, with_text(&[&[5][..], &[0; 8]].concat(), &[b""]));
    let message = "the numbers of the logs and of the segments";
    let base = LogBase::new();
    let mut files = base.files.clone();
    put(files.get_mut("MANIFEST").unwrap(), 24, &[99]);
    put_segment(&mut files, 1, 0, &base.log.number.to_le_bytes());
    for name in base.files.keys() {
        let Some((_, rest)) =
            name.split_once(['.', '-']).filter(|_| name.starts_with(&base.second_segment()))
        else {
            continue;
        };
        let separator = &name[6..7];
        let bytes = files.remove(name).unwrap();
        files.insert(format!("{:06}{separator}{rest}", base.log.number), bytes);
    }
    seal_store(&mut files);
    page.add("segment-number", "of the second segment", message, files);
}
