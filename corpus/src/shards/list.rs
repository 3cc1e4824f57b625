//! The file `shards.json`, which lists the shards of a set of fingerprints.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use simstore::error::Damage;
use simstore::fs::open_regular;
use simstore::{Error, Result};

/// File name of the list of shards, in the folder that also has the shards.
pub const LIST_FILE: &str = "shards.json";

const FORMAT: &str = "simstore shards";
const VERSION: u32 = 1;
/// Bytes before the eight hexadecimal digits of the checksum, near the end of the list file.
const BEFORE_CHECKSUM: &[u8] = b", \"checksum\": \"";
/// Bytes after the checksum, at the end of the list file.
const END: &[u8] = b"\"}\n";

/// List of the shards of a set of fingerprints, with the properties that all shards share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardList {
    /// Id of the program run that wrote the shards: 16 hexadecimal digits.
    pub run: String,
    /// Width of the fingerprints, in bits.
    pub bits: u32,
    /// Largest distance of a query, in bits.
    pub distance: u32,
    /// Name of the profile that made the fingerprints of texts, if known.
    pub profile: Option<String>,
    /// Number of input rows that have no fingerprint, and are therefore in no shard.
    pub missing: u64,
    /// Shards that are not empty, in ascending order of their numbers.
    pub shards: Vec<StoreShard>,
}

/// Entry of the list for one shard. Each shard is a store in a folder of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreShard {
    /// Name of the store's folder, which is in the same folder as the list.
    pub folder: String,
    /// Number of distinct fingerprints.
    pub fingerprints: u64,
    /// Number of pairs of a fingerprint and an id.
    pub pairs: u64,
    /// Checksum in the manifest of the store, in eight hexadecimal digits. The checksum covers all files of the store.
    pub checksum: String,
}

/// The JSON object in the list file, without the last field, which is the checksum.
#[derive(Serialize)]
struct ShardListFile<'a> {
    format: &'static str,
    version: u32,
    #[serde(flatten)]
    list: &'a ShardList,
}

impl ShardList {
    /// Reads a list from the file at `path`, and checks it.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read. [`Error::Corrupt`] if it is damaged. [`Error::NotAStore`] if it is
    /// another kind of file. [`Error::UnsupportedVersion`] if it has another version.
    pub fn read(path: &Path) -> Result<ShardList> {
        let mut data = Vec::new();
        let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut data));
        read.map_err(Error::io(path, "read"))?;
        ShardList::from_bytes(path, &data)
    }

    fn from_bytes(path: &Path, data: &[u8]) -> Result<ShardList> {
        let corrupt =
            |at: usize, damage| Error::Corrupt { path: path.to_path_buf(), offset: at as u64, damage };
        let Some((text, expected)) = without_checksum(data) else {
            let expected = "at the end of the file, in eight hexadecimal digits: it was cut short, or is another kind of file";
            return Err(corrupt(data.len(), Damage::Malformed { name: "checksum", expected }));
        };
        let found = crc32fast::hash(text);
        if found != expected {
            return Err(corrupt(text.len(), Damage::Checksum { part: "list of shards", expected, found }));
        }
        let malformed = || {
            let expected = "an object of JSON with just the members of the format, each of its type";
            corrupt(0, Damage::Malformed { name: LIST_FILE, expected })
        };
        let mut members: Map<String, Value> = serde_json::from_slice(data).map_err(|_| malformed())?;
        members.remove("checksum");
        // Checked first: another version may have other members.
        if members.remove("format").is_none_or(|format| format != FORMAT) {
            let reason = "not a list of shards, by its member `format`".to_owned();
            return Err(Error::NotAStore { path: path.to_path_buf(), reason });
        }
        let version = members.remove("version").and_then(|version| version.as_u64()?.try_into().ok());
        let found: u32 = version.ok_or_else(malformed)?;
        if found != VERSION {
            return Err(Error::UnsupportedVersion { path: path.to_path_buf(), found, supported: VERSION });
        }
        let members = Value::Object(members);
        let list = ShardList::deserialize(&members).map_err(|_| malformed())?;
        // The object must have exactly the members of the format.
        if serde_json::to_value(&list).ok().as_ref() != Some(&members) {
            return Err(malformed());
        }
        list.check().map_err(|damage| corrupt(0, damage))?;
        Ok(list)
    }

    /// Checks that the values of the list are consistent, and allowed by the file format.
    fn check(&self) -> Result<(), Damage> {
        let malformed = |name, expected| Err(Damage::Malformed { name, expected });
        let field = |name, found, expected| Err(Damage::Field { name, found, expected });
        if self.bits != 64 && self.bits != 128 {
            return field("bits", self.bits.into(), "64 or 128");
        }
        if self.distance > self.bits / 4 {
            return field("distance", self.distance.into(), "0 to a quarter of the bits");
        }
        if !is_hexadecimal(&self.run, 16) {
            return malformed("run", "16 hexadecimal digits in lower case");
        }
        let mut before = None;
        for shard in &self.shards {
            let Some((number, _)) = parse_shard_folder(&shard.folder).filter(|&(_, run)| run == self.run)
            else {
                return malformed("folder", "`shard-`, a number of five digits or more, `-` and the run");
            };
            if before >= Some(number) {
                return Err(Damage::Order { what: "the numbers of the shards" });
            }
            before = Some(number);
            if !is_hexadecimal(&shard.checksum, 8) {
                return malformed("checksum", "eight hexadecimal digits in lower case");
            }
            if shard.fingerprints == 0 {
                return field("fingerprints", 0, "1 or more");
            }
            if shard.pairs < shard.fingerprints {
                return field("pairs", shard.pairs, "as many as `fingerprints`, or more");
            }
        }
        Ok(())
    }

    /// Encodes the list as the content of the file. Returns an error if [`ShardList::read`] would refuse the list.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let unfit =
            |problem: &dyn std::fmt::Display| Error::BadArgument(format!("a list of shards: {problem}"));
        self.check().map_err(|damage| unfit(&damage))?;
        let file = ShardListFile { format: FORMAT, version: VERSION, list: self };
        let mut bytes = serde_json::to_vec(&file).map_err(|error| unfit(&error))?;
        // The last brace comes after the checksum.
        bytes.pop();
        let checksum = format!("{:08x}", crc32fast::hash(&bytes));
        Ok([&bytes, BEFORE_CHECKSUM, checksum.as_bytes(), END].concat())
    }
}

/// Returns the folder name of the shard with this number, which the run with the id `run` writes.
pub fn shard_folder(number: u64, run: &str) -> String {
    format!("shard-{number:05}-{run}")
}

/// Parses the folder name of a shard. Returns the number of the shard and the id of the run, or `None` if the name is not
/// one of a shard.
pub(super) fn parse_shard_folder(folder: &str) -> Option<(u64, &str)> {
    let (number, run) = folder.strip_prefix("shard-")?.split_once('-')?;
    let number = number.parse().ok()?;
    (is_hexadecimal(run, 16) && shard_folder(number, run) == folder).then_some((number, run))
}

pub(super) fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Splits the list file into the bytes covered by the checksum, and the checksum. `None` if the file does not end with a
/// checksum.
fn without_checksum(data: &[u8]) -> Option<(&[u8], u32)> {
    let (text, digits) = data.strip_suffix(END)?.split_last_chunk::<8>()?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| is_hexadecimal(digits, 8))?;
    Some((text.strip_suffix(BEFORE_CHECKSUM)?, u32::from_str_radix(digits, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "00112233445566ff";

    /// Returns the list that is the example in `format-spec/shards.md`.
    fn example() -> ShardList {
        let shard = |number, pairs, checksum: &str| {
            let folder = shard_folder(number, RUN);
            StoreShard { folder, fingerprints: 1, pairs, checksum: checksum.to_owned() }
        };
        let shards = vec![shard(0, 2, "a3d11b94"), shard(2, 1, "9a4d2eb1")];
        ShardList { run: RUN.to_owned(), bits: 64, distance: 3, profile: None, missing: 0, shards }
    }

    fn read(data: &[u8]) -> Result<ShardList> {
        ShardList::from_bytes(Path::new(LIST_FILE), data)
    }

    #[test]
    fn the_page_shows_the_written_bytes() {
        let page = include_str!("../../../format-spec/shards.md");
        let shown = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        let shown = shown.replace('\n', "") + "\n";
        assert_eq!(String::from_utf8(example().to_bytes().unwrap()).unwrap(), shown);
    }

    #[test]
    fn written_files_are_read_and_no_others_are_written() {
        for profile in [None, Some(""), Some("größe \u{1f600} \"\\ \n \u{1} \u{7f}")] {
            let profile = profile.map(str::to_owned);
            let made = ShardList { bits: 128, distance: 32, profile, missing: u64::MAX, ..example() };
            assert_eq!(read(&made.to_bytes().unwrap()).unwrap(), made);
        }
        let wrong = ShardList { distance: 17, ..example() };
        assert!(matches!(wrong.to_bytes(), Err(Error::BadArgument(_))));
    }

    #[test]
    fn a_list_that_was_cut_or_changed_is_refused() {
        let whole = example().to_bytes().unwrap();
        let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
        let changed = (0..whole.len()).map(|at| {
            let mut other = whole.clone();
            other[at] ^= 1;
            other
        });
        for data in cut.chain(changed).chain([[&whole[..], b"\n"].concat()]) {
            assert!(matches!(read(&data), Err(Error::Corrupt { .. })), "{}", data.escape_ascii());
        }
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        let whole = example().to_bytes().unwrap();
        let (text, _) = without_checksum(&whole).unwrap();
        let text = std::str::from_utf8(text).unwrap();
        for (old, new, said) in [
            (r#""bits":64"#, r#""bits":65"#, "field `bits` is 65, expected 64 or 128"),
            (r#""bits":64"#, r#""bits":true"#, "of its type"),
            (r#""bits":64"#, r#""bits":4294967360"#, "of its type"),
            (r#""distance":3"#, r#""distance":17"#, "field `distance` is 17"),
            (r#""distance":3"#, r#""distance":3.0"#, "of its type"),
            (r#""run":"0"#, r#""run":""#, "`run` is not 16"),
            (r#""run":"0"#, r#""run":"A"#, "`run` is not 16"),
            ("null", "5", "of its type"),
            (r#""profile":null,"#, "", "just the members"),
            (r#""missing":0"#, r#""missing":0,"more":1"#, "just the members"),
            (r#""missing":0"#, r#""missing":18446744073709551616"#, "of its type"),
            (r#"[{"folder""#, r#"[5,{"folder""#, "of its type"),
            (r#"[{"folder""#, r#"[["a",1,1,"b"],{"folder""#, "of its type"),
            ("shard-00000-", "../outside-", "`folder` is not"),
            ("shard-00000-", "shard-0000-", "`folder` is not"),
            ("shard-00000-", "shard-000000-", "`folder` is not"),
            ("shard-00000-", "shard-+0000-", "`folder` is not"),
            ("shard-00000-0", "shard-00000-1", "`folder` is not"),
            ("shard-00000-", "shard-99999999999999999999-", "`folder` is not"),
            ("shard-00000-", "shard-00002-", "the numbers of the shards are not ascending"),
            (r#""fingerprints":1"#, r#""fingerprints":0"#, "field `fingerprints` is 0"),
            (r#""fingerprints":1"#, r#""fingerprints":3"#, "field `pairs` is 2"),
            ("a3d11b94", "A3D11B94", "`checksum` is not eight"),
            (r#""version":1"#, r#""version":2,"other":1"#, "format version 2, this program reads 1"),
            (r#""version":1"#, r#""version":"1""#, "of its type"),
            ("simstore shards", "parts", "not a list of shards"),
            (r#""format""#, r#""kind""#, "not a list of shards"),
            (r#"{"format""#, r#"["format""#, "an object of JSON"),
        ] {
            let other = text.replacen(old, new, 1);
            assert_ne!(text, other, "{old}");
            let checksum = format!("{:08x}", crc32fast::hash(other.as_bytes()));
            let data = [other.as_bytes(), BEFORE_CHECKSUM, checksum.as_bytes(), END].concat();
            let error = read(&data).unwrap_err().to_string();
            assert!(error.contains(said), "{new}: {error}");
        }
    }
}
