//! All that inputs hold, in order, handed to a visitor.

use std::path::Path;
use std::sync::Arc;

use crate::inputs::batch::FingerprintedDocuments;
use crate::inputs::item::Malformed;
use crate::notice::Notice;
use crate::watch::Step;
use crate::{Counts, InputKind, Inputs, Item, Watch};
use simstore::{Fingerprint, Result};
use simstore_io::ReadProgress;
use simstore_text::{Profile, Sketcher};

/// Items that are counted together: to count each takes time.
const COUNTED: u64 = 64;

/// One fingerprint, or a block of them.
#[derive(Debug)]
pub enum Piece<'a, F> {
    /// One, with its id.
    Item(Item<F>),
    /// Some that stand together and have no ids.
    Block(Block<'a, F>),
}

/// Fingerprints that stand together in a raw file: their ids are their positions.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a, F> {
    /// The fingerprints.
    pub fingerprints: &'a [F],
    /// The position of the first among all of all inputs, malformed ones included, from 0; the others count on.
    pub position: u64,
    /// Their file.
    pub path: &'a Arc<Path>,
    /// Which one of the file the first is, from 1.
    pub line: u64,
}

impl Inputs {
    /// Visits all that the inputs hold, in order; of documents, the fingerprints are made by a profile.
    ///
    /// A visitor may find an item to be malformed, by [`Item::bad`]; any other error of it ends the visit. The watch is told
    /// of "documents" or "fingerprints".
    ///
    /// # Errors
    /// [`simstore::Error::Cancelled`] if the watch says so; [`simstore::Error::BadInput`] for what is malformed, unless that is
    /// [skipped](Inputs::skip_bad); [`simstore::Error::BadArgument`] if the profile makes fingerprints of another width; and the errors of
    /// [`Inputs::kind`] and of the visitor.
    pub fn visit<F: Fingerprint>(
        &self,
        profile: &Profile,
        watch: &dyn Watch,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        match self.kind()? {
            InputKind::Documents => self.visit_documents(profile, watch, visitor),
            InputKind::Fingerprints => self.visit_fingerprints(watch, visitor),
        }
    }

    /// As [`Inputs::visit`], of inputs that are known to be documents.
    ///
    /// # Errors
    /// As [`Inputs::visit`].
    pub fn visit_documents<F: Fingerprint>(
        &self,
        profile: &Profile,
        watch: &dyn Watch,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        self.visit_made(self.fingerprint_documents(profile), profile, watch, visitor)
    }

    /// As [`Inputs::visit`], of inputs that are known to be documents, with sketches: the first sketch is the fingerprint.
    ///
    /// # Errors
    /// As [`Inputs::visit`].
    pub fn visit_sketched<F: Fingerprint>(
        &self,
        sketcher: &Sketcher,
        watch: &dyn Watch,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        let documents = self.fingerprint_documents(sketcher.profile()).with_sketches(sketcher);
        self.visit_made(documents, sketcher.profile(), watch, visitor)
    }

    /// As [`Inputs::visit`]; of documents, fingerprints, or sketches if these are asked for, are made only of those that are wanted,
    /// by path and line. With texts if they are asked for.
    ///
    /// # Errors
    /// As [`Inputs::visit`].
    pub fn visit_wanted<F: Fingerprint>(
        &self,
        profile: &Profile,
        sketcher: Option<&Sketcher>,
        with_texts: bool,
        watch: &dyn Watch,
        wanted: impl Fn(&Path, u64) -> bool + Send + Sync + 'static,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        match self.kind()? {
            InputKind::Documents => {
                let documents = self.fingerprint_documents(profile).only(wanted);
                let documents = match sketcher {
                    Some(sketcher) => documents.with_sketches(sketcher),
                    None => documents,
                };
                let documents = if with_texts { documents.with_texts() } else { documents };
                self.visit_made(documents, profile, watch, visitor)
            }
            InputKind::Fingerprints => self.visit_fingerprints(watch, visitor),
        }
    }

    fn visit_made<F: Fingerprint>(
        &self,
        mut documents: FingerprintedDocuments<F>,
        profile: &Profile,
        watch: &dyn Watch,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        profile.check_bits(F::BITS)?;
        let read = documents.progress();
        let step = Step::new(watch, "documents").reading(Arc::clone(&read), || self.total_bytes());
        let next = |step: &Step<'_>| documents.next_while(|| step.add(0));
        let mut counts = visit_each(next, &step, Malformed::new(self.skips_bad(), watch), visitor)?;
        counts.count_files(&read);
        tell_notes(&read, watch);
        Ok(counts)
    }

    /// As [`Inputs::visit`], of inputs that are known to be fingerprints.
    ///
    /// # Errors
    /// As [`Inputs::visit`].
    pub fn visit_fingerprints<F: Fingerprint>(
        &self,
        watch: &dyn Watch,
        visitor: impl FnMut(Item<F>) -> Result<()>,
    ) -> Result<Counts> {
        let records = self.fingerprints();
        let read = records.progress();
        let mut records = (0..).zip(records);
        let next = |_: &Step<'_>| {
            let (position, record) = records.next()?;
            Some(record.map(|item| item.at(position)))
        };
        let step = Step::new(watch, "fingerprints");
        let mut counts = visit_each(next, &step, Malformed::new(self.skips_bad(), watch), visitor)?;
        counts.count_files(&read);
        tell_notes(&read, watch);
        Ok(counts)
    }

    /// As [`Inputs::visit_fingerprints`], but visits the fingerprints of a raw file in blocks, which is much faster.
    ///
    /// # Errors
    /// As [`Inputs::visit`].
    pub fn visit_pieces<F: Fingerprint>(
        &self,
        watch: &dyn Watch,
        mut visitor: impl FnMut(Piece<'_, F>) -> Result<()>,
    ) -> Result<Counts> {
        let step = Step::new(watch, "fingerprints");
        step.add(0)?;
        let mut malformed = Malformed::new(self.skips_bad(), watch);
        let mut records = self.fingerprints::<F>();
        let (mut block, mut position) = (Vec::new(), 0);
        while let Some((fingerprints, first, path)) = records.given_block()? {
            visitor(Piece::Block(Block { fingerprints, position: first, path, line: first + 1 }))?;
            position = first + fingerprints.len() as u64;
            step.add(fingerprints.len() as u64)?;
        }
        loop {
            block.clear();
            let count = records.read_block(&mut block)?;
            if count > 0 {
                let Some((path, last)) = records.place() else { break };
                let line = last + 1 - count;
                visitor(Piece::Block(Block { fingerprints: &block, position, path, line }))?;
                position += count;
                step.add(count)?;
                continue;
            }
            let Some(record) = records.next() else { break };
            let visited = record.and_then(|item| visitor(Piece::Item(item.at(position))));
            if let Err(error) = visited {
                malformed.take(error)?;
            }
            position += 1;
            if position.is_multiple_of(COUNTED) {
                step.add(COUNTED)?;
            }
        }
        let bad = malformed.count();
        let mut counts = Counts { read: position - bad, bad, ..Counts::default() };
        counts.count_files(&records.progress());
        tell_notes(&records.progress(), watch);
        Ok(counts)
    }
}

fn visit_each<F: Fingerprint>(
    mut next: impl FnMut(&Step<'_>) -> Option<Result<Item<F>>>,
    step: &Step<'_>,
    mut malformed: Malformed<'_>,
    mut visitor: impl FnMut(Item<F>) -> Result<()>,
) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut seen: u64 = 0;
    step.add(0)?;
    while let Some(item) = next(step) {
        let visited = item.and_then(|item| {
            let mut counted = counts;
            counted.count(&item);
            visitor(item)?;
            counts = counted;
            Ok(())
        });
        if let Err(error) = visited {
            malformed.take(error)?;
        }
        seen += 1;
        if seen.is_multiple_of(COUNTED) {
            step.add(COUNTED)?;
        }
    }
    counts.bad = malformed.count();
    Ok(counts)
}

/// Tells the notes of a reading that has ended.
pub fn tell_notes(read: &ReadProgress, watch: &dyn Watch) {
    read.notes().into_iter().for_each(|(note, count)| watch.notice(&Notice::Read(note, count)));
}
