//! The counter that threads share when they look for dense groups, in every order in which its loads and exchanges can happen.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use atomic::{AtomicU16, Ordering};
use source::Counter;

/// Atomics whose operations wait for their turn.
mod atomic {
    pub(crate) use std::sync::atomic::Ordering;

    use super::wait_for_turn;

    #[derive(Debug, Default)]
    pub(crate) struct AtomicU16(std::sync::atomic::AtomicU16);

    impl AtomicU16 {
        pub(crate) fn load(&self, order: Ordering) -> u16 {
            wait_for_turn();
            self.0.load(order)
        }

        pub(crate) fn store(&self, count: u16, order: Ordering) {
            wait_for_turn();
            self.0.store(count, order);
        }

        /// As the standard library has it.
        pub(crate) fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            mut change: impl FnMut(u16) -> Option<u16>,
        ) -> Result<u16, u16> {
            let mut before = self.load(fetch);
            while let Some(next) = change(before) {
                wait_for_turn();
                match self.0.compare_exchange(before, next, set, fetch) {
                    Ok(count) => return Ok(count),
                    Err(count) => before = count,
                }
            }
            Err(before)
        }
    }
}

#[path = "../src/pipeline/counter.rs"]
mod source;

const THREADS: usize = 3;

/// One order of the operations of all threads.
#[derive(Default)]
struct Order {
    /// At each step the number of the thread among those that wait; then always the first one.
    given: Vec<usize>,
    /// The choice at each step, and the number of choices.
    taken: Vec<(usize, usize)>,
    waiting: Vec<usize>,
    ended: usize,
    turn: Option<usize>,
}

impl Order {
    /// Chooses whose turn it is, when all threads wait or have ended.
    fn choose(&mut self) {
        if self.waiting.len() + self.ended == THREADS && !self.waiting.is_empty() {
            self.waiting.sort_unstable();
            let one = self.given.get(self.taken.len()).copied().unwrap_or_default();
            self.taken.push((one, self.waiting.len()));
            self.turn = Some(self.waiting.remove(one));
        }
    }
}

type Shared = Arc<(Mutex<Order>, Condvar)>;

thread_local! {
    static THREAD: std::cell::RefCell<Option<(usize, Shared)>> = const { std::cell::RefCell::new(None) };
}

/// Outside of the threads that are ordered, nobody waits.
fn wait_for_turn() {
    let Some((number, shared)) = THREAD.with_borrow(Clone::clone) else { return };
    let mut order = shared.0.lock().unwrap();
    order.waiting.push(number);
    order.choose();
    shared.1.notify_all();
    while order.turn != Some(number) {
        order = shared.1.wait(order).unwrap();
    }
    order.turn = None;
}

/// Has all threads do the same in every order; checks what is left of each, and counts the orders.
fn in_every_order<T: Sync>(
    make: impl Fn() -> T,
    run: impl Fn(&T) + Sync,
    mut check: impl FnMut(&T),
) -> usize {
    let (mut given, mut orders) = (Vec::new(), 0);
    loop {
        let (value, shared) = (make(), Shared::default());
        shared.0.lock().unwrap().given = std::mem::take(&mut given);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (value, run, shared) = (&value, &run, Arc::clone(&shared));
                scope.spawn(move || {
                    THREAD.set(Some((number, Arc::clone(&shared))));
                    run(value);
                    let mut order = shared.0.lock().unwrap();
                    order.ended += 1;
                    order.choose();
                    shared.1.notify_all();
                });
            }
        });
        check(&value);
        orders += 1;
        let mut taken = std::mem::take(&mut shared.0.lock().unwrap().taken);
        while taken.pop_if(|&mut (one, of)| one + 1 == of).is_some() {}
        match taken.pop() {
            None => return orders,
            Some((one, _)) => given = taken.into_iter().map(|(one, _)| one).chain([one + 1]).collect(),
        }
    }
}

#[test]
fn whatever_the_order_the_count_is_exact() {
    for limit in [1, 2, 3, 4, u16::MAX] {
        let seen = Mutex::new(Vec::new());
        let orders = in_every_order(
            Counter::default,
            |counter| {
                let before = counter.add(limit);
                seen.lock().unwrap().push(before);
            },
            |counter| {
                assert_eq!(counter.get(), limit.min(THREADS as u16));
                let mut seen = std::mem::take(&mut *seen.lock().unwrap());
                seen.sort_unstable();
                // Each count is seen once below the limit, by whichever thread.
                assert!(seen.into_iter().eq((0..THREADS as u16).map(|before| before.min(limit))));
            },
        );
        assert!(orders > 60, "{orders} orders");
    }
}

/// A load and a store in two steps lose additions, and the search of all orders finds that.
#[test]
fn an_addition_in_two_steps_is_found_out() {
    let mut lost = 0;
    let add = |count: &AtomicU16| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let orders = in_every_order(AtomicU16::default, add, |count| {
        lost += usize::from(count.load(Ordering::Relaxed) != THREADS as u16);
    });
    assert!(lost > 0 && lost < orders, "{lost} of {orders}");
}
