//! What services do today, with a key-value store or a database: four blocks of 16 bits of a 64-bit simhash are keys of
//! the fingerprint and its id; a new document is compared with all that share a block with it, and stored if none is
//! within 3 bits. The same by a live store of simstore. Prints Markdown.
//!
//! `cargo run --release -p simstore-rivals --bin services -- 1000000` takes the number of fingerprints that are stored
//! first. Stores go to the folder that TMPDIR names, and are removed.

#[path = "../../../../tests/support/random.rs"]
mod random;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use random::random;
use redb::{Database, Durability as RedbDurability, ReadableTable, Table, TableDefinition};
use rusqlite::{CachedStatement, Connection, params};
use simstore::{Codec, Durability, Insertion, Store, StoreOptions};

const DISTANCE: u32 = 3;
/// Documents of a transaction: none waits for the disk, and all are acknowledged at its end.
const BATCH: usize = 1000;
/// Documents that come when the first are stored.
const DOCUMENTS: usize = 100_000;

type Pair = (u64, u64);

trait Service {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()>;
    /// Stores those that are new, one after another; returns how many were.
    fn insert_if_new(&mut self, pairs: &[Pair]) -> Result<u64>;
    /// Waits for all that is to be done in the background.
    fn settle(&mut self) -> Result<()>;
}

/// The block with a number.
fn block(fingerprint: u64, number: u8) -> u16 {
    (fingerprint >> (16 * number)) as u16
}

fn is_near(a: u64, b: u64) -> bool {
    (a ^ b).count_ones() <= DISTANCE
}

type Key = (u8, u16, u64, u64);
const TABLE: TableDefinition<Key, ()> = TableDefinition::new("blocks");

struct Redb(Database);

impl Redb {
    fn store(table: &mut Table<Key, ()>, (fingerprint, id): Pair) -> Result<()> {
        for number in 0..4 {
            table.insert((number, block(fingerprint, number), fingerprint, id), ())?;
        }
        Ok(())
    }

    fn is_new(table: &Table<Key, ()>, fingerprint: u64) -> Result<bool> {
        for number in 0..4 {
            let of_block = block(fingerprint, number);
            for entry in table.range((number, of_block, 0, 0)..=(number, of_block, u64::MAX, u64::MAX))? {
                if is_near(entry?.0.value().2, fingerprint) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn write(&self, work: impl FnOnce(&mut Table<Key, ()>) -> Result<u64>) -> Result<u64> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(RedbDurability::None)?;
        let done = work(&mut transaction.open_table(TABLE)?)?;
        transaction.commit()?;
        Ok(done)
    }
}

impl Service for Redb {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        self.write(|table| pairs.iter().try_for_each(|&pair| Redb::store(table, pair)).map(|()| 0))?;
        Ok(())
    }

    fn insert_if_new(&mut self, pairs: &[Pair]) -> Result<u64> {
        self.write(|table| {
            let mut inserted = 0;
            for &pair in pairs {
                if Redb::is_new(table, pair.0)? {
                    Redb::store(table, pair)?;
                    inserted += 1;
                }
            }
            Ok(inserted)
        })
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.0.begin_write()?.commit()?)
    }
}

struct Sqlite(Connection);

const INSERT: &str = "INSERT OR IGNORE INTO blocks VALUES (?1, ?2, ?3, ?4)";
const SELECT: &str = "SELECT fingerprint FROM blocks WHERE number = ?1 AND block = ?2";

impl Sqlite {
    fn create(path: &Path) -> Result<Sqlite> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -1048576;
             CREATE TABLE blocks (number INTEGER, block INTEGER, fingerprint INTEGER, id INTEGER,
                                  PRIMARY KEY (number, block, fingerprint, id)) WITHOUT ROWID;",
        )?;
        Ok(Sqlite(connection))
    }

    fn store(insert: &mut CachedStatement, (fingerprint, id): Pair) -> Result<()> {
        for number in 0..4 {
            insert.execute(params![number, block(fingerprint, number), fingerprint as i64, id as i64])?;
        }
        Ok(())
    }

    fn is_new(select: &mut CachedStatement, fingerprint: u64) -> Result<bool> {
        for number in 0..4 {
            let mut rows = select.query(params![number, block(fingerprint, number)])?;
            while let Some(row) = rows.next()? {
                if is_near(row.get::<_, i64>(0)? as u64, fingerprint) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Service for Sqlite {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        let transaction = self.0.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT)?;
        pairs.iter().try_for_each(|&pair| Sqlite::store(&mut insert, pair))?;
        drop(insert);
        Ok(transaction.commit()?)
    }

    fn insert_if_new(&mut self, pairs: &[Pair]) -> Result<u64> {
        let transaction = self.0.transaction()?;
        let mut insert = transaction.prepare_cached(INSERT)?;
        let mut select = transaction.prepare_cached(SELECT)?;
        let mut inserted = 0;
        for &pair in pairs {
            if Sqlite::is_new(&mut select, pair.0)? {
                Sqlite::store(&mut insert, pair)?;
                inserted += 1;
            }
        }
        drop((insert, select));
        transaction.commit()?;
        Ok(inserted)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}

struct Simstore(Store<u64>);

impl Service for Simstore {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        let mut batch = self.0.transaction();
        pairs.iter().for_each(|&(fingerprint, id)| batch.insert(fingerprint, id));
        Ok(batch.commit(Durability::Os)?)
    }

    fn insert_if_new(&mut self, pairs: &[Pair]) -> Result<u64> {
        let mut inserted = 0;
        for &(fingerprint, id) in pairs {
            inserted += u64::from(self.0.insert_if_new(fingerprint, id)? == Insertion::Inserted);
        }
        Ok(inserted)
    }

    fn settle(&mut self) -> Result<()> {
        self.0.flush()?;
        Ok(self.0.wait_for_background()?)
    }
}

fn bytes_in(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let metadata = entry?.metadata()?;
        bytes += metadata.len();
    }
    Ok(bytes)
}

fn open(name: &str, folder: &Path) -> Result<Box<dyn Service>> {
    let store = |codec| -> Result<Box<dyn Service>> {
        Ok(Box::new(Simstore(Store::open(
            folder,
            StoreOptions { distance: Some(DISTANCE), codec: Some(codec), ..StoreOptions::default() },
        )?)))
    };
    match name {
        "redb 4.1.0" => Ok(Box::new(Redb(Database::create(folder.join("redb"))?))),
        "SQLite" => Ok(Box::new(Sqlite::create(&folder.join("sqlite"))?)),
        "simstore, elias-fano" => store(Codec::EliasFano),
        _ => store(Codec::FirstDifference),
    }
}

fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let mut state = 1;
    let stored: Vec<Pair> = (0..count as u64).map(|id| (random(&mut state), id)).collect();
    // Half are near what is stored, half are new.
    let documents: Vec<Pair> = (0..DOCUMENTS)
        .map(|i| {
            let near = stored[random(&mut state) as usize % count].0;
            let flips = random(&mut state) as u32 % (DISTANCE + 1);
            let near = (0..flips).fold(near, |x, _| x ^ 1 << (random(&mut state) % 64));
            (if i % 2 == 0 { near } else { random(&mut state) }, (count + i) as u64)
        })
        .collect();
    println!("{count} random fingerprints with ids, transactions of {BATCH}, none waits for the disk\n");
    println!(
        "| | inserts/s | settled, s | bytes each on disk | insert_if_new/s, {DOCUMENTS} documents, half near | stored |"
    );
    println!("|---|---|---|---|---|---|");
    let mut expected = None;
    for name in ["redb 4.1.0", "SQLite", "simstore, elias-fano", "simstore, first-difference"] {
        let folder = tempfile::tempdir()?;
        let mut service = open(name, folder.path())?;
        let start = Instant::now();
        stored.chunks(BATCH).try_for_each(|pairs| service.insert(pairs))?;
        let inserts = count as f64 / start.elapsed().as_secs_f64();
        let start = Instant::now();
        service.settle()?;
        let settled = start.elapsed().as_secs_f64();
        let bytes = bytes_in(folder.path())? as f64 / count as f64;
        let start = Instant::now();
        let mut inserted = 0;
        for pairs in documents.chunks(BATCH) {
            inserted += service.insert_if_new(pairs)?;
        }
        let if_new = DOCUMENTS as f64 / start.elapsed().as_secs_f64();
        println!("| {name} | {inserts:.0} | {settled:.2} | {bytes:.1} | {if_new:.0} | {inserted} |");
        ensure!(*expected.get_or_insert(inserted) == inserted, "{name} stores {inserted} of the documents");
    }
    Ok(())
}
