//! Reads prefix lines.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use byteorder::{ByteOrder, LittleEndian};

use super::line::{LINE_BYTES, LineKind, PrefixLine, SlotKeys};
use super::shape::LineShape;
use super::{PAGE_LINES, page_count, page_crc};
use crate::error::Damage;
use crate::file_bytes::Bytes;
use crate::simd::{self, Level};

/// The prefix lines of an open table, with a bit for each page whose checksum has been verified.
#[derive(Debug)]
pub(crate) struct PrefixLines {
    bytes: Arc<Bytes>,
    /// Offset of the first line in the file, in bytes.
    start: usize,
    /// Number of lines, main lines and others.
    lines: u64,
    /// Shape of the main lines.
    shape: LineShape,
    verified: VerifiedPages,
}

/// A bit for each page of lines: whether its checksum has been verified.
#[derive(Debug)]
pub(crate) struct VerifiedPages {
    bits: Box<[AtomicU64]>,
    /// Number of pages that have not been verified.
    left: AtomicU64,
}

impl VerifiedPages {
    fn new(pages: u64) -> VerifiedPages {
        let bits = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        VerifiedPages { bits, left: AtomicU64::new(pages) }
    }

    /// Whether all pages have been verified.
    #[inline(always)]
    pub(crate) fn are_all(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Whether the page of this line has been verified.
    #[inline(always)]
    pub(crate) fn is_verified(&self, line: u64) -> bool {
        let page = line / PAGE_LINES;
        self.bits
            .get(page as usize / 64)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 == 1)
    }

    fn set(&self, page: u64) {
        let bit = 1 << (page % 64);
        // Of several threads, one counts the page.
        if self.bits[page as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Equal keys, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyRun {
    pub(crate) key: u64,
    /// Rank of the first fingerprint with this key.
    pub(crate) rank: u64,
    /// Number of fingerprints.
    pub(crate) count: u64,
}

/// A group of lines: the main lines, or the lines that divide another line.
#[derive(Clone, Copy)]
struct LineGroup {
    shape: LineShape,
    /// Number of the group's first line.
    first_line: u64,
    /// Prefix of the group's key 0.
    base: u64,
}

impl LineGroup {
    /// Returns the index of the line that has the prefix `key`, which must belong to the group.
    #[inline(always)]
    fn line_of(self, key: u64) -> u64 {
        self.shape.address((key - self.base) >> self.shape.low_bits()).line
    }
}

/// A line of a group: a main line, or a line that divides another one.
#[derive(Clone, Copy)]
pub(crate) struct LinePlace {
    group: LineGroup,
    /// Index of the line in the group.
    number: u64,
}

impl LinePlace {
    /// The place of no line.
    pub(crate) const NONE: LinePlace =
        LinePlace { group: LineGroup { shape: LineShape::NONE, first_line: 0, base: 0 }, number: 0 };
}

impl PrefixLines {
    /// Creates a view of the lines that start at the byte `start` of a file. There are `lines` lines; the first of them have
    /// the shape `shape`. The checksums of the pages follow the lines.
    pub(crate) fn new(bytes: Arc<Bytes>, start: usize, lines: u64, shape: LineShape) -> PrefixLines {
        PrefixLines { bytes, start, lines, shape, verified: VerifiedPages::new(page_count(lines)) }
    }

    /// Shape of the main lines.
    #[inline(always)]
    pub(crate) fn shape(&self) -> LineShape {
        self.shape
    }

    /// Memory in bytes that this struct takes in addition to the bytes of the file.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.verified.bits[..])
    }

    /// Offset of a line in the file, in bytes.
    #[inline(always)]
    pub(crate) fn offset(&self, line: u64) -> usize {
        self.start + line as usize * LINE_BYTES
    }

    /// All lines.
    #[inline(always)]
    pub(crate) fn as_lines(&self) -> &[[u8; LINE_BYTES]] {
        let bytes: &[u8] = self.bytes.as_ref().as_ref();
        bytes[self.start..].as_chunks().0.get(..self.lines as usize).unwrap_or_default()
    }

    /// The pages whose checksums have been verified.
    #[inline(always)]
    pub(crate) fn verified_pages(&self) -> &VerifiedPages {
        &self.verified
    }

    /// Advises the operating system to read the page of a line ahead, if the page has not been verified before. So the disk
    /// reads the pages of a query together, not one after the other.
    #[inline(always)]
    pub(crate) fn prefetch_from_disk(&self, line: u64) {
        if !self.verified.is_verified(line) {
            self.will_need(line / PAGE_LINES);
        }
    }

    #[cold]
    fn will_need(&self, page: u64) {
        let first = page * PAGE_LINES;
        let end = self.lines.min(first + PAGE_LINES);
        self.bytes.will_need(self.offset(first)..self.offset(end));
    }

    /// Returns the line with this number. The first call for a line of a page verifies the checksum of the page.
    ///
    /// # Errors
    /// An error if there is no such line, or if its page is damaged.
    #[inline(always)]
    pub(crate) fn line(&self, line: u64) -> Result<PrefixLine<'_>, Damage> {
        if !self.verified.is_verified(line) {
            self.verify_page_of(line)?;
        }
        let bytes: &[u8] = self.bytes.as_ref().as_ref();
        match bytes.get(self.offset(line)..).and_then(|rest| rest.first_chunk()) {
            Some(line) => Ok(PrefixLine(line)),
            None => Err(OUTSIDE),
        }
    }

    #[cold]
    fn verify_page_of(&self, line: u64) -> Result<(), Damage> {
        if line >= self.lines {
            return Err(OUTSIDE);
        }
        let page = line / PAGE_LINES;
        let first = page * PAGE_LINES;
        let bytes: &[u8] = self.bytes.as_ref().as_ref();
        let page_bytes = &bytes[self.offset(first)..self.offset(self.lines.min(first + PAGE_LINES))];
        let expected = LittleEndian::read_u32(&bytes[self.offset(self.lines) + page as usize * 4..]);
        let found = page_crc(page, page_bytes);
        if expected != found {
            return Err(Damage::LinePage { offset: self.offset(first) as u64, expected, found });
        }
        self.verified.set(page);
        Ok(())
    }

    fn main_lines(&self) -> LineGroup {
        LineGroup { shape: self.shape, first_line: 0, base: 0 }
    }

    /// Returns the rank of the first fingerprint whose prefix is at least `key`, or the number of fingerprints if all
    /// prefixes are smaller.
    ///
    /// # Errors
    /// An error if a line is damaged.
    pub(crate) fn rank_of(&self, key: u64) -> Result<u64, Damage> {
        let mut group = self.main_lines();
        loop {
            let relative = key - group.base;
            let bucket = relative >> group.shape.low_bits();
            let address = group.shape.address(bucket);
            let line = self.line(group.first_line + address.line)?;
            match line.kind(group.shape)? {
                LineKind::Keys { counts } => {
                    let keys = SlotKeys::of_slot(Level::of_processor(), counts, address.slot);
                    let low = (relative & ((1 << group.shape.low_bits()) - 1)) as u8;
                    let indexes = keys.start..keys.start + keys.count;
                    let smaller = indexes.take_while(|&index| line.low_byte(index) < low).count();
                    return Ok(line.rank() + u64::from(keys.start) + smaller as u64);
                }
                LineKind::Run { key: run, count } => {
                    let is_after = relative - group.shape.first_key(address.line) > run;
                    return Ok(line.rank() + if is_after { count } else { 0 });
                }
                kind @ LineKind::Divided { .. } => group = self.dividing(group, address.line, kind)?,
            }
        }
    }

    /// Returns the group of the lines that divide a line. `line` is the index of the line in `group`, and `kind` is
    /// [`LineKind::Divided`].
    fn dividing(&self, group: LineGroup, line: u64, kind: LineKind) -> Result<LineGroup, Damage> {
        let LineKind::Divided { first_line, lines, low_bits } = kind else { return Err(OUTSIDE) };
        let shape = group.shape.divided(line, low_bits, lines)?;
        let is_inside = first_line >= self.shape.lines()
            && first_line.checked_add(lines).is_some_and(|end| end <= self.lines);
        if !is_inside {
            let expected = "the number of a line behind the main lines, with enough lines after it";
            return Err(Damage::Field { name: "first line", found: first_line, expected });
        }
        Ok(LineGroup { shape, first_line, base: group.base + group.shape.first_key(line) })
    }

    /// Calls `visitor` with the keys from `low` to `high`, both included, in ascending order, until it returns `Break`.
    ///
    /// # Errors
    /// An error if a line is damaged.
    pub(crate) fn visit(
        &self,
        low: u64,
        high: u64,
        mut visitor: impl FnMut(KeyRun) -> ControlFlow<()>,
    ) -> Result<(), Damage> {
        let group = self.main_lines();
        self.visit_lines(group, group.line_of(low)..group.line_of(high) + 1, low, high, &mut visitor)
            .map(drop)
    }

    /// The main line with this number.
    pub(crate) fn main_line(&self, number: u64) -> LinePlace {
        LinePlace { group: self.main_lines(), number }
    }

    /// Returns the lines that divide the line `place`, as far as they have keys from `low` to `high`. Prefetches them. Returns
    /// `None` if the line is not divided.
    ///
    /// # Errors
    /// An error if a line is damaged.
    #[inline(always)]
    pub(crate) fn dividing_lines(
        &self,
        LinePlace { group, number }: LinePlace,
        low: u64,
        high: u64,
    ) -> Result<Option<impl Iterator<Item = LinePlace>>, Damage> {
        let kind = self.line(group.first_line + number)?.kind(group.shape)?;
        if !matches!(kind, LineKind::Divided { .. }) {
            return Ok(None);
        }
        let (group, numbers) = self.lines_between(group, number, kind, low, high)?;
        let bytes: &[u8] = self.bytes.as_ref().as_ref();
        for number in numbers.clone() {
            self.prefetch_from_disk(group.first_line + number);
            simd::prefetch(bytes, self.offset(group.first_line + number));
        }
        Ok(Some(numbers.map(move |number| LinePlace { group, number })))
    }

    /// Like [`PrefixLines::visit`], for the keys of one line.
    ///
    /// # Errors
    /// See [`PrefixLines::visit`].
    #[inline(always)]
    pub(crate) fn visit_place(
        &self,
        LinePlace { group, number }: LinePlace,
        low: u64,
        high: u64,
        mut visitor: impl FnMut(KeyRun) -> ControlFlow<()>,
    ) -> Result<(), Damage> {
        self.visit_line(group, number, low, high, &mut visitor).map(drop)
    }

    /// Returns the lines that divide a line, as far as they have keys from `low` to `high`: their group, and their indexes in it.
    /// `number` is the index of the divided line in `group`, and `kind` its content.
    fn lines_between(
        &self,
        group: LineGroup,
        number: u64,
        kind: LineKind,
        low: u64,
        high: u64,
    ) -> Result<(LineGroup, Range<u64>), Damage> {
        let dividing = self.dividing(group, number, kind)?;
        let last = group.base + (group.shape.buckets(number).end << group.shape.low_bits()) - 1;
        let (low, high) = (low.max(dividing.base), high.min(last));
        let numbers = if low <= high { dividing.line_of(low)..dividing.line_of(high) + 1 } else { 0..0 };
        Ok((dividing, numbers))
    }

    fn visit_lines(
        &self,
        group: LineGroup,
        numbers: Range<u64>,
        low: u64,
        high: u64,
        visitor: &mut impl FnMut(KeyRun) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Damage> {
        for number in numbers {
            if self.visit_line(group, number, low, high, visitor)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `visitor` with the keys of a line from `low` to `high`. `number` is the index of the line in the group.
    fn visit_line(
        &self,
        group: LineGroup,
        number: u64,
        low: u64,
        high: u64,
        visitor: &mut impl FnMut(KeyRun) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Damage> {
        let shape = group.shape;
        let line = self.line(group.first_line + number)?;
        let rank = line.rank();
        let kind = line.kind(shape)?;
        match kind {
            LineKind::Keys { counts: 0 } => {}
            LineKind::Keys { counts } => {
                let (level, low_mask) = (Level::of_processor(), (1_u64 << shape.low_bits()) - 1);
                let buckets = shape.buckets(number);
                let bucket_of = |key: u64| key.saturating_sub(group.base) >> shape.low_bits();
                for bucket in buckets.start.max(bucket_of(low))..buckets.end.min(bucket_of(high) + 1) {
                    let first = group.base + (bucket << shape.low_bits());
                    let keys = SlotKeys::of_slot(level, counts, shape.address(bucket).slot);
                    for index in keys.start..keys.start + keys.count {
                        let key = first + (u64::from(line.low_byte(index)) & low_mask);
                        let run = KeyRun { key, rank: rank + u64::from(index), count: 1 };
                        if low <= key && key <= high && visitor(run).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                }
            }
            LineKind::Run { key, count } => {
                let key = (group.base + shape.first_key(number)).saturating_add(key);
                if low <= key && key <= high {
                    return Ok(visitor(KeyRun { key, rank, count }));
                }
            }
            LineKind::Divided { .. } => {
                let (dividing, numbers) = self.lines_between(group, number, kind, low, high)?;
                return self.visit_lines(dividing, numbers, low, high, visitor);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Verifies the checksums of all pages. Calls `damaged` with each error.
    pub(crate) fn verify_pages(&self, mut damaged: impl FnMut(Damage)) {
        for page in 0..page_count(self.lines) {
            if let Err(damage) = self.verify_page_of(page * PAGE_LINES) {
                damaged(damage);
            }
        }
    }

    /// Checks everything that look-ups do not check: that the ranks count the keys, that the lines that divide others come in
    /// their order, and that bytes without a meaning are zero. `fingerprints` is the number of fingerprints of the table.
    ///
    /// # Errors
    /// The first error found.
    pub(crate) fn check(&self, fingerprints: u64) -> Result<(), Damage> {
        let mut check = LineCheck { lines: self, next_line: self.shape.lines(), rank: 0, previous: 0 };
        check.group(self.main_lines(), 1 << self.shape.key_bits())?;
        if check.next_line != self.lines {
            return Err(Damage::Mismatch { what: "the number of prefix lines and those that divide others" });
        }
        if check.rank != fingerprints {
            return Err(Damage::Mismatch {
                what: "the number of keys in the prefix lines and of fingerprints",
            });
        }
        Ok(())
    }
}

/// A check of all lines in order.
struct LineCheck<'a> {
    lines: &'a PrefixLines,
    /// Expected first line of the next divided line.
    next_line: u64,
    /// Number of keys so far.
    rank: u64,
    /// The last key.
    previous: u64,
}

impl LineCheck<'_> {
    /// Checks the lines of a group. Its keys must be less than `end`: a group may have buckets behind the end of the line that it
    /// divides.
    fn group(&mut self, group: LineGroup, end: u64) -> Result<(), Damage> {
        (0..group.shape.lines()).try_for_each(|number| self.line(group, number, end))
    }

    fn line(&mut self, group: LineGroup, number: u64, end: u64) -> Result<(), Damage> {
        let shape = group.shape;
        let line = self.lines.line(group.first_line + number)?;
        let kind = line.kind(shape)?;
        if line.rank() != self.rank {
            return Err(Damage::Mismatch { what: "the rank of a prefix line and the keys before it" });
        }
        if !line.is_padded_with_zeros(kind) {
            return Err(Damage::Mismatch { what: "a prefix line and the code of its keys" });
        }
        let first = group.base + shape.first_key(number);
        let end = end.min(group.base + (shape.buckets(number).end << shape.low_bits()));
        match kind {
            LineKind::Keys { counts } => {
                let low_bits = shape.low_bits();
                let (mut found, mut previous) = (0, self.previous);
                if first < end {
                    let _ = self.lines.visit_line(group, number, first, end - 1, &mut |run: KeyRun| {
                        found += 1;
                        if run.key < previous {
                            return ControlFlow::Break(());
                        }
                        previous = run.key;
                        ControlFlow::Continue(())
                    })?;
                }
                let all = counts.count_ones();
                let is_wide = (0..all).any(|index| u32::from(line.low_byte(index)) >> low_bits > 0);
                // A break leaves keys uncounted, and so do keys in slots without a bucket or behind the end.
                if found != all || is_wide {
                    return Err(Damage::Order { what: "the keys of a prefix line" });
                }
                (self.rank, self.previous) = (self.rank + u64::from(all), previous);
            }
            LineKind::Run { key, count } => {
                let key = first.saturating_add(key);
                if key >= end || key < self.previous || count == 0 {
                    return Err(Damage::Order { what: "the keys of a prefix line" });
                }
                (self.rank, self.previous) = (self.rank.saturating_add(count), key);
            }
            LineKind::Divided { first_line, lines, .. } => {
                let dividing = self.lines.dividing(group, number, kind)?;
                if first_line != self.next_line {
                    return Err(Damage::Order { what: "the prefix lines that divide others" });
                }
                self.next_line += lines;
                self.group(dividing, end)?;
            }
        }
        Ok(())
    }
}

/// Error for a number of a line that the table does not have.
const OUTSIDE: Damage = Damage::Mismatch { what: "the number of a prefix line and the number of lines" };
