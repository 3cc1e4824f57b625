//! Tests a counter that several threads share. Runs the atomic operations of the threads in every possible order.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use atomic::{AtomicU16, Ordering};
use source::SaturatingCounter;

/// Replacement of `std::sync::atomic`. Each operation waits until the tested [`Order`] lets the thread run.
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

        /// Updates the value by the same algorithm as the standard library: loads it, then tries to exchange it, again
        /// and again until no other thread has changed it in between.
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
    /// For each of the first steps, the thread that must run next, as an index into the waiting threads. At later steps,
    /// the first waiting thread runs.
    prescribed: Vec<usize>,
    /// For each step so far: the index of the chosen thread among the waiting threads, and the number of waiting threads.
    choices: Vec<(usize, usize)>,
    waiting: Vec<usize>,
    ended: usize,
    turn: Option<usize>,
}

impl Order {
    /// Chooses the thread that runs next, if no thread is running: each one waits or has ended.
    fn choose(&mut self) {
        if self.waiting.len() + self.ended == THREADS && !self.waiting.is_empty() {
            self.waiting.sort_unstable();
            let one = self.prescribed.get(self.choices.len()).copied().unwrap_or_default();
            self.choices.push((one, self.waiting.len()));
            self.turn = Some(self.waiting.remove(one));
        }
    }
}

type SharedOrder = Arc<(Mutex<Order>, Condvar)>;

thread_local! {
    static THREAD: std::cell::RefCell<Option<(usize, SharedOrder)>> = const { std::cell::RefCell::new(None) };
}

/// Waits until the [`Order`] lets the current thread run. Threads that are not part of an order do not wait.
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

/// For every order of the threads' operations, makes a value, calls `run` with it on all threads, and then checks the
/// value. Returns the number of orders.
fn in_every_order<T: Sync>(
    make: impl Fn() -> T,
    run: impl Fn(&T) + Sync,
    mut check: impl FnMut(&T),
) -> usize {
    let (mut given, mut orders) = (Vec::new(), 0);
    loop {
        let (value, shared) = (make(), SharedOrder::default());
        shared.0.lock().unwrap().prescribed = std::mem::take(&mut given);
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
        let mut taken = std::mem::take(&mut shared.0.lock().unwrap().choices);
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
            SaturatingCounter::default,
            |counter| {
                let before = counter.add(limit);
                seen.lock().unwrap().push(before);
            },
            |counter| {
                assert_eq!(counter.get(), limit.min(THREADS as u16));
                let mut seen = std::mem::take(&mut *seen.lock().unwrap());
                seen.sort_unstable();
                // Each count below the limit is returned to exactly one thread.
                assert!(seen.into_iter().eq((0..THREADS as u16).map(|before| before.min(limit))));
            },
        );
        assert!(orders > 60, "{orders} orders");
    }
}

/// An addition that consists of a separate load and store is lost in some orders, and in others not.
#[test]
fn an_addition_in_two_steps_is_found_out() {
    let mut lost = 0;
    let add = |count: &AtomicU16| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let orders = in_every_order(AtomicU16::default, add, |count| {
        lost += usize::from(count.load(Ordering::Relaxed) != THREADS as u16);
    });
    assert!(lost > 0 && lost < orders, "{lost} of {orders}");
}
