//! Representatives: each set is similar enough to its representative.
//!
//! Sets are taken in order of preference. A set is represented by the first better set that is similar to it and a representative. If
//! there is none, it is a representative itself. So the only state is one bit a set.

use std::collections::{BTreeMap, HashMap, HashSet};

use bitvec::vec::BitVec;
use simstore::Result;
use simstore::spill::Sorted;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::dense_groups::{Asked, Crowds, batches};
use crate::pipeline::prefix_filter::{Index, STOP};
use crate::pipeline::verify::{Compared, TOGETHER};
use crate::rows::{Candidate, Led, Near, Nearness, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows, RowsIter};

/// Sets that are looked at together, of these the most of crowds, which are compared all with all, and the most candidates.
const SETS: usize = 512;
const OF_CROWDS: usize = 64;
const CANDIDATES: usize = 1 << 16;

/// Representatives.
#[derive(Debug)]
pub(crate) struct Leaders {
    /// The represented sets, in order.
    pub(crate) led: Rows<Led>,
    /// A bit for each set: whether another set represents it.
    pub(crate) is_led: BitVec,
}

/// Representatives by all near pairs.
pub(crate) fn stars_of(
    pairs: impl Iterator<Item = Result<Near>>,
    sets: usize,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Leaders> {
    let (mut led, mut is_led) = (workspace.rows(), BitVec::repeat(false, sets));
    for (at, pair) in pairs.enumerate() {
        let (worse, better, nearness) = pair?;
        if !is_led[worse as usize] && !is_led[better as usize] {
            is_led.set(worse as usize, true);
            led.push((worse, better, nearness))?;
        }
        if at % 1024 == 0 {
            step.add(0)?;
        }
    }
    Ok(Leaders { led: led.finish()?, is_led })
}

/// The same of pairs in memory.
pub(crate) fn pairs_of_stars<S: Copy>(pairs: &[(u32, u32, S)]) -> Vec<(u32, u32, S)> {
    let mut is_led = HashSet::new();
    let is_new = |&&(worse, better, _): &&(u32, u32, S)| !is_led.contains(&better) && is_led.insert(worse);
    pairs.iter().filter(is_new).copied().collect()
}

/// A set, and the candidates that may represent it.
struct Open {
    set: u32,
    is_crowded: bool,
    better: Vec<u32>,
}

/// The sets that may be similar to a better one, in order.
struct Queue<'a> {
    candidates: Cursor<RowsIter<'a, Candidate>, Candidate>,
    members: std::iter::Peekable<Box<dyn Iterator<Item = u32> + 'a>>,
}

impl Queue<'_> {
    fn next(&mut self) -> Result<Option<Open>> {
        let of_pairs = self.candidates.peek()?.map(|(worse, _)| worse);
        let Some(set) = of_pairs.into_iter().chain(self.members.peek().copied()).min() else {
            return Ok(None);
        };
        let is_crowded = self.members.next_if_eq(&set).is_some();
        let mut better = Vec::new();
        while let Some((_, one)) = self.candidates.take_if(|&(worse, _)| worse == set)? {
            better.push(one);
        }
        Ok(Some(Open { set, is_crowded, better }))
    }

    /// So many as are looked at together.
    fn some(&mut self) -> Result<Vec<Open>> {
        let (mut some, mut of_crowds, mut candidates) = (Vec::new(), 0, 0);
        while some.len() < SETS && of_crowds < OF_CROWDS && candidates < CANDIDATES {
            let Some(open) = self.next()? else { break };
            candidates += open.better.len();
            of_crowds += usize::from(open.is_crowded);
            some.push(open);
        }
        Ok(some)
    }
}

/// State of the pass.
struct Stars<'a> {
    compared: &'a Compared<'a>,
    step: &'a Step<'a>,
    is_led: BitVec,
    /// The similarity of pairs that were compared before it is known whether it is needed: on all cores.
    known: HashMap<Candidate, Option<Nearness>>,
}

/// Finds representatives by candidates and crowds: a set is represented by the most preferred representative that is similar enough.
pub(crate) fn stars(
    candidates: &Rows<Candidate>,
    crowded: &Marks,
    crowds: Option<&Crowds<'_>>,
    compared: &Compared<'_>,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Leaders> {
    let sets = compared.sets.len();
    let mut stars = Stars { compared, step, is_led: BitVec::repeat(false, sets), known: HashMap::new() };
    let members: Box<dyn Iterator<Item = u32>> = Box::new(crowded.marked());
    let mut queue = Queue { candidates: candidates.cursor()?, members: members.peekable() };
    let mut among = crowds.map(|crowds| Among::new(crowds, workspace));
    let mut led = workspace.rows();
    loop {
        let some = queue.some()?;
        if some.is_empty() {
            return Ok(Leaders { led: led.finish()?, is_led: stars.is_led });
        }
        step.add(0)?;
        if let Some(among) = &mut among {
            among.ask(some.iter().filter(|open| open.is_crowded).map(|open| open.set), crowded, step)?;
        }
        stars.compare_likely(&some)?;
        for open in &some {
            let of_crowd =
                among.as_mut().filter(|_| open.is_crowded).and_then(|among| among.leader(open.set));
            let leader = match stars.leader(open)? {
                Some(leader) => Some(of_crowd.filter(|other| other.1 < leader.1).unwrap_or(leader)),
                None => of_crowd,
            };
            match (leader, &mut among) {
                (Some(leader), _) => {
                    stars.is_led.set(open.set as usize, true);
                    led.push(leader)?;
                }
                (None, Some(among)) if open.is_crowded => among.stands(open.set),
                (None, _) => {}
            }
        }
    }
}

impl Stars<'_> {
    /// Compares some sets with the candidates that may represent them: first the most preferred candidate, which often does, then all others.
    fn compare_likely(&mut self, some: &[Open]) -> Result<()> {
        self.known.clear();
        let firsts: Vec<Candidate> = some.iter().filter_map(|open| self.standing(open).next()).collect();
        self.compare(&firsts)?;
        let is_found =
            |open: &&Open| self.standing(open).next().is_some_and(|first| self.known[&first].is_some());
        let left = some.iter().filter(|open| !is_found(open));
        let others: Vec<Candidate> = left.flat_map(|open| self.standing(open).skip(1)).collect();
        self.compare(&others)
    }

    /// The pairs of a set with candidates that are representatives so far.
    fn standing<'o>(&self, open: &'o Open) -> impl Iterator<Item = Candidate> + use<'o, '_> {
        let better = open.better.iter().filter(|&&better| !self.is_led[better as usize]);
        better.map(|&better| (open.set, better))
    }

    fn compare(&mut self, pairs: &[Candidate]) -> Result<()> {
        for some in pairs.chunks(TOGETHER) {
            self.step.add(some.len() as u64)?;
            self.known.extend(some.iter().copied().zip(self.compared.alike_each(some)?));
        }
        Ok(())
    }

    /// The representative of a set among its candidates.
    fn leader(&self, open: &Open) -> Result<Option<Led>> {
        for pair in self.standing(open) {
            let similarity = match self.known.get(&pair) {
                Some(&similarity) => similarity,
                None => {
                    self.step.add(1)?;
                    self.compared.alike(pair.0, pair.1)?
                }
            };
            if let Some(similarity) = similarity {
                return Ok(Some((pair.0, pair.1, similarity)));
            }
        }
        Ok(None)
    }
}

/// A set whose representative was searched, and the one of the index.
type Answered = (Asked, Option<Led>);

/// The sets of crowds among one another, some at a time.
struct Among<'a> {
    crowds: &'a Crowds<'a>,
    /// Representatives.
    index: Index<'a>,
    /// The sets of the chunk, each with its answer.
    asked: BTreeMap<u32, Answered>,
    /// Representatives of the chunk.
    standing: Vec<u32>,
    /// Sets with a representative of an index that was full, in order.
    before: Cursor<Sorted<Led>, Led>,
    workspace: &'a Workspace,
}

impl<'a> Among<'a> {
    fn new(crowds: &'a Crowds<'a>, workspace: &'a Workspace) -> Self {
        let none = Sorted::Memory(Vec::new().into_iter());
        Among {
            crowds,
            index: Index::new(crowds),
            asked: BTreeMap::new(),
            standing: Vec::new(),
            before: Cursor::new(none),
            workspace,
        }
    }

    /// Searches the representatives of the next sets, in order.
    fn ask(&mut self, sets: impl Iterator<Item = u32>, crowded: &Marks, step: &Step<'_>) -> Result<()> {
        let last = self.asked.last_key_value().map(|(&set, _)| set);
        for set in std::mem::take(&mut self.standing) {
            if let Some((asked, _)) = self.asked.get(&set) {
                self.index.add(asked, |_, _| {});
            }
        }
        self.asked.clear();
        if let Some(last) = last.filter(|_| self.index.is_full()) {
            self.look_ahead(last, crowded, step)?;
        }
        self.asked = self.found(sets)?.into_iter().map(|answered| (answered.0.set, answered)).collect();
        Ok(())
    }

    /// The representative of each of some sets, in order, in the indexes so far: the representative of an earlier index is preferred.
    fn found(&mut self, sets: impl Iterator<Item = u32>) -> Result<Vec<Answered>> {
        let least = of_similarity(self.crowds.rule.least);
        let found = self.index.search(sets.map(|set| (set, least)).collect(), |_| STOP)?;
        let preferred = |(asked, mut leader): (Asked, Vec<Led>)| {
            let before = self.before.at(asked.set, |row| row.0)?;
            Ok((asked, before.or_else(|| leader.pop())))
        };
        found.into_iter().map(preferred).collect()
    }

    /// Searches the index for representatives of all sets after one, and empties it.
    fn look_ahead(&mut self, last: u32, crowded: &Marks, step: &Step<'_>) -> Result<()> {
        let mut found = self.workspace.sorter();
        for some in batches(crowded.marked().skip_while(|&set| set <= last), SETS, step) {
            for (_, leader) in self.found(some?.into_iter())? {
                leader.map_or(Ok(()), |leader| found.push(leader))?;
            }
        }
        self.index = Index::new(self.crowds);
        self.before = Cursor::new(found.finish()?);
        Ok(())
    }

    /// The representative of a set of the chunk.
    fn leader(&mut self, set: u32) -> Option<Led> {
        let (asked, leader) = self.asked.get(&set)?;
        if leader.is_some() {
            return *leader;
        }
        self.standing.iter().find_map(|better| {
            let (other, _) = self.asked.get(better)?;
            Some((set, *better, self.crowds.alike(asked, other)?))
        })
    }

    /// Notes that a set of the chunk is a representative.
    fn stands(&mut self, set: u32) {
        self.standing.push(set);
    }
}
