//! Sequences of writes to a store that are the same in every run, so that the expected contents after any number of
//! writes are known.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use simstore::{Durability, Error, Insertion, Snapshot, Store, Transaction};

use super::random::Random;

/// An endless sequence of operations of one thread on a store, and the contents that the store should have after the
/// operations done so far. Streams with different numbers write different pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteStream {
    number: u64,
    /// Number of operations of this stream that are done.
    pub(crate) done: u64,
    ids: BTreeSet<u64>,
    metadata: Option<u64>,
}

enum StreamOperation {
    Insert(u64),
    InsertIfNew(u64),
    Delete(u64),
    /// A transaction that inserts the pairs with the ids in the list, deletes the pair whose id is the second field,
    /// and sets the metadata of the stream.
    Batch(Vec<u64>, u64),
}

/// Returns the fingerprint that streams insert with an id. Fingerprints of different ids are not near each other.
fn fingerprint(id: u64) -> u64 {
    Random::hash(!id)
}

fn name(id: u64) -> String {
    format!("document {id:x}")
}

impl WriteStream {
    pub(crate) fn new(number: u64) -> WriteStream {
        WriteStream { number, ..WriteStream::default() }
    }

    /// Returns stream number `number` with the expected contents after its first `done` operations. Writes to no store.
    pub(crate) fn with_done(number: u64, done: u64) -> WriteStream {
        let mut stream = WriteStream::new(number);
        (0..done).for_each(|_| stream.advance());
        stream
    }

    fn id(&self, operation: u64, part: u64) -> u64 {
        self.number << 40 | operation << 4 | part
    }

    fn metadata_key(&self) -> String {
        format!("stream {}", self.number)
    }

    fn next_operation(&self) -> StreamOperation {
        let random = Random::hash(self.number << 32 | self.done);
        // The id of an earlier operation, which is often still stored.
        let earlier = self.id((random >> 8) % (self.done + 1), random >> 60 & 1);
        match random % 8 {
            0..=2 => StreamOperation::Insert(self.id(self.done, 0)),
            3 => StreamOperation::InsertIfNew(self.id(self.done, 0)),
            4..=5 => StreamOperation::Delete(earlier),
            _ => StreamOperation::Batch((0..5).map(|part| self.id(self.done, part)).collect(), earlier),
        }
    }

    /// Applies the next operation to the expected contents, but not to a store.
    fn advance(&mut self) {
        match self.next_operation() {
            StreamOperation::Insert(id) | StreamOperation::InsertIfNew(id) => {
                self.ids.insert(id);
            }
            StreamOperation::Delete(id) => {
                self.ids.remove(&id);
            }
            StreamOperation::Batch(ids, deleted) => {
                self.ids.extend(ids);
                self.ids.remove(&deleted);
                self.metadata = Some(self.done);
            }
        }
        self.done += 1;
    }

    /// Performs the next operation on a store, and applies it to the expected contents.
    pub(crate) fn perform(&mut self, store: &Store<u64>, durability: Durability) -> Result<(), Error> {
        match self.next_operation() {
            StreamOperation::Insert(id) => {
                let mut transaction = store.transaction();
                transaction.insert(fingerprint(id), id);
                transaction.commit(durability)?;
            }
            StreamOperation::InsertIfNew(id) => {
                let mut transaction = store.transaction();
                transaction.insert_named(fingerprint(id), id, &name(id))?;
                let inserted = transaction.commit_if_new(durability)?;
                // An earlier process may have done this operation just before it was killed.
                let repeated = matches!(&inserted, Insertion::DuplicateOf(all) if all[0].id == Some(id));
                assert!(inserted == Insertion::Inserted || repeated, "{id:x}: {inserted:?}");
            }
            StreamOperation::Delete(id) => {
                let was_there = store.delete(fingerprint(id), id)?;
                if durability != Durability::Os {
                    store.sync()?;
                }
                assert_eq!(was_there, self.ids.contains(&id), "{id:x}");
            }
            StreamOperation::Batch(ids, deleted) => {
                let mut batch: Transaction<u64> = store.transaction();
                ids.iter().try_for_each(|&id| batch.insert_named(fingerprint(id), id, &name(id)))?;
                batch.delete(fingerprint(deleted), deleted);
                batch.set_metadata(&self.metadata_key(), &self.done.to_le_bytes())?;
                batch.commit(durability)?;
            }
        }
        self.advance();
        Ok(())
    }

    /// Finds out how many operations of this stream a snapshot contains. Advances the expected contents to this number
    /// of operations. Panics if no number in `range` gives the contents that the snapshot has.
    pub(crate) fn advance_to_snapshot(&mut self, snapshot: &Snapshot<u64>, range: RangeInclusive<u64>) {
        let mut found = BTreeSet::new();
        for entry in snapshot.iter() {
            let entry = entry.unwrap();
            let id = entry.id.unwrap();
            assert_eq!(entry.fingerprint, fingerprint(id), "{id:x}");
            if id >> 40 == self.number {
                found.insert(id);
            }
        }
        let metadata = snapshot.metadata(&self.metadata_key()).unwrap();
        let metadata = metadata.map(|value| u64::from_le_bytes(value.try_into().unwrap()));
        while self.done < *range.start() {
            self.advance();
        }
        let first = self.clone();
        while (&self.ids, self.metadata) != (&found, metadata) {
            assert!(
                self.done < *range.end(),
                "stream {}: what is there is not what there is after any of {range:?} operations; after the first:\n\
                 missing {:x?}\nbut there {:x?}\nmark {metadata:?}, not {:?}",
                self.number,
                first.ids.difference(&found).collect::<Vec<_>>(),
                found.difference(&first.ids).collect::<Vec<_>>(),
                first.metadata
            );
            self.advance();
        }
        for &id in found.iter().rev().take(20) {
            assert_eq!(snapshot.query(fingerprint(id) ^ 0b101, 3).unwrap()[0].id, Some(id));
            if id & 0xf > 0 {
                assert_eq!(snapshot.name(id).unwrap(), Some(name(id)));
            }
        }
    }
}
