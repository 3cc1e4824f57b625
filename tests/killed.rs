//! Tests of stores whose writer process is killed. Afterwards, a store has all acknowledged operations. If it has an
//! operation of a thread, it also has all earlier operations of this thread.
//!
//! A writer is this test program, run again as a child process. It prints a line to standard error for each acknowledged
//! operation. `SIMSTORE_KILLS=10000 cargo test --test engine killed` sets the number of kills; the default is 300.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use simstore::{Durability, Error, Snapshot, Store, StoreOptions};

use crate::support::random::Random;
use crate::support::write_stream::WriteStream;

const STREAMS: usize = 3;
const DURABILITIES: [Durability; STREAMS] =
    [Durability::Sync, Durability::Group(Duration::from_micros(200)), Durability::Os];
/// Environment variable that gives a child process the path of the store.
const STORE_VARIABLE: &str = "SIMSTORE_CHILD_STORE";
/// Environment variable for a writer process: the number of operations that earlier writers have done, one number for
/// each thread of the writer, separated by commas.
const DONE_VARIABLE: &str = "SIMSTORE_CHILD_DONE";

fn options() -> StoreOptions {
    StoreOptions { memtable: 1 << 15, fanout: 2, block_size: Some(512), ..StoreOptions::default() }
}

/// Returns a command that runs the test `name` of this module in a child process, and gives it the path of the store.
fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("killed::{name}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(STORE_VARIABLE, path);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Prints a line with one write call, so that lines of several threads do not mix.
fn print_line(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The program of a writer process, which writes to the store until it is killed. In a normal run of the tests, the
/// environment variable `STORE_VARIABLE` is not set, and this function returns at once.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(STORE_VARIABLE) else { return };
    let done = std::env::var(DONE_VARIABLE).unwrap();
    let done = done.split(',').map(|done| done.parse().unwrap());
    let store = Store::<u64>::open(Path::new(&path), options()).unwrap();
    std::thread::scope(|scope| {
        for ((number, done), durability) in (0..).zip(done).zip(DURABILITIES) {
            let store = &store;
            scope.spawn(move || {
                let mut stream = WriteStream::with_done(number, done);
                loop {
                    stream.perform(store, durability).unwrap();
                    print_line(&format!("{number}"));
                    if durability == Durability::Os {
                        // Slows this stream down: without syncs, it would do most of the operations.
                        std::thread::sleep(Duration::from_micros(50));
                    }
                }
            });
        }
        for i in u64::from(std::process::id()) << 32.. {
            std::thread::sleep(Duration::from_micros(Random::hash(i) % 8000));
            if Random::hash(i) >> 32 & 3 == 0 { store.compact().unwrap() } else { store.flush().unwrap() }
        }
    });
}

/// A writer process, and the number of acknowledged operations of each [`WriteStream`], including those of earlier
/// processes.
struct WriterProcess {
    process: Child,
    lines: Receiver<String>,
    acknowledged: [u64; STREAMS],
}

impl WriterProcess {
    fn start(path: &Path, streams: &[WriteStream]) -> WriterProcess {
        let done: Vec<String> = streams.iter().map(|stream| stream.done.to_string()).collect();
        let mut process =
            child("child_that_writes", path).env(DONE_VARIABLE, done.join(",")).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().try_for_each(|line| sender.send(line.unwrap())));
        let acknowledged = std::array::from_fn(|i| streams[i].done);
        WriterProcess { process, lines, acknowledged }
    }

    fn count_acknowledgement(&mut self, line: &str) {
        let stream: usize = line.parse().unwrap_or_else(|_| panic!("a writer says: {line}"));
        self.acknowledged[stream] += 1;
    }

    /// Waits until the writer has acknowledged `count` further operations, and counts them.
    fn wait(&mut self, count: u64) {
        for _ in 0..count {
            let line = self.lines.recv().expect("a writer that goes on");
            self.count_acknowledgement(&line);
        }
    }

    /// Counts the acknowledgements that have arrived, without waiting for more. Returns the total for each stream.
    fn catch_up(&mut self) -> [u64; STREAMS] {
        while let Ok(line) = self.lines.try_recv() {
            self.count_acknowledgement(&line);
        }
        self.acknowledged
    }

    fn kill(mut self) -> [u64; STREAMS] {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        while let Ok(line) = self.lines.recv() {
            self.count_acknowledgement(&line);
        }
        self.acknowledged
    }
}

/// Checks how many operations of each stream are in a snapshot: at least `least`, and at most `most` + 1, because the
/// acknowledgement of the last operation may be lost. Advances the streams to the contents of the snapshot.
///
/// Accepts a torn tail of the newest log, because a record may be half-written when the writer is killed or the log is
/// read.
fn check(snapshot: &Snapshot<u64>, streams: &mut [WriteStream], least: [u64; STREAMS], most: [u64; STREAMS]) {
    for ((stream, least), most) in streams.iter_mut().zip(least).zip(most) {
        stream.advance_to_snapshot(snapshot, least..=most + 1);
    }
    snapshot.verify(|error| assert!(matches!(error, Error::TornTail { .. }), "{error}"));
}

fn kill_count() -> u64 {
    std::env::var("SIMSTORE_KILLS").map_or(300, |kills| kills.parse().unwrap())
}

#[test]
fn killed_at_any_time() {
    let (mut folder, mut streams) = (tempfile::tempdir().unwrap(), Vec::new());
    let (mut operations, mut most_segments, mut recovered) = (0, 0, 0);
    for round in 0..kill_count() {
        if round % 20 == 0 {
            folder = tempfile::tempdir().unwrap();
            streams = (0..STREAMS as u64).map(WriteStream::new).collect();
        }
        let path = folder.path().join("store");
        let before: [u64; STREAMS] = std::array::from_fn(|i| streams[i].done);
        let mut writer = WriterProcess::start(&path, &streams);
        let random = Random::hash(round);
        match random % 4 {
            // A short wait: the store is being opened, or was just opened.
            0 => std::thread::sleep(Duration::from_micros((random >> 8) % 15_000)),
            1 => std::thread::sleep(Duration::from_micros((random >> 8) % 60_000)),
            _ => writer.wait((random >> 8) % 300),
        }
        let acknowledged = writer.kill();
        match Snapshot::open(&path) {
            Ok(snapshot) => {
                check(&snapshot, &mut streams, acknowledged, acknowledged);
                most_segments = most_segments.max(snapshot.segments().len());
            }
            // The writer was killed before it created the store.
            Err(Error::NotAStore { .. } | Error::Io { .. }) if acknowledged == [0; STREAMS] => continue,
            Err(error) => panic!("round {round}: {error}"),
        }
        if random >> 62 == 0 {
            // Recovers the store here, before the next writer opens it.
            let now = std::array::from_fn(|i| streams[i].done);
            let store = Store::<u64>::open(&path, options()).unwrap();
            check(&store.snapshot(), &mut streams.clone(), now, now);
            recovered += 1;
        }
        operations += (0..STREAMS).map(|i| streams[i].done - before[i]).sum::<u64>();
    }
    println!(
        "{} kills, {operations} operations, up to {most_segments} segments, {recovered} opened between",
        kill_count()
    );
    assert!(operations > kill_count() && most_segments > 1);
}

#[test]
fn readers_see_a_prefix_while_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut streams: Vec<WriteStream> = (0..STREAMS as u64).map(WriteStream::new).collect();
    let mut writer = WriterProcess::start(&path, &streams);
    writer.wait(1);
    let mut reader = Snapshot::<u64>::open(&path).unwrap();
    for round in 0..200 {
        let before = writer.catch_up();
        reader = if round % 2 == 0 { Snapshot::open(&path).unwrap() } else { reader.refresh().unwrap() };
        // The lines of some operations may not have arrived yet.
        let after = writer.catch_up().map(|operations| operations + 1000);
        check(&reader, &mut streams, before, after);
        writer.wait(10);
    }
    let acknowledged = writer.kill();
    check(&Snapshot::open(&path).unwrap(), &mut streams, acknowledged, acknowledged);
}

/// The program of a child process. It waits for a byte on standard input, opens the store, and prints whether it got the
/// lock. Then it keeps the store open until standard input ends. In a normal run of the tests, it returns at once.
#[test]
fn child_that_opens() {
    let Some(path) = std::env::var_os(STORE_VARIABLE) else { return };
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let store = Store::<u64>::open(Path::new(&path), options());
    match &store {
        Ok(_) => print_line("mine"),
        Err(Error::Locked { .. }) => print_line("locked"),
        Err(error) => panic!("{error}"),
    }
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn one_of_many_processes_gets_a_store() {
    for (round, count) in [2, 3, 4, 8, 16, 16, 16, 16].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        // In every other round, the child processes create the store.
        let exists = round % 2 == 0;
        if exists {
            Store::<u64>::open(&path, options()).unwrap().insert(7, 7).unwrap();
        }
        let start = || child("child_that_opens", &path).spawn().unwrap();
        let mut children: Vec<Child> = (0..count).map(|_| start()).collect();
        for child in &mut children {
            child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        }
        let answers = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for child in &mut children {
                let answers = &answers;
                scope.spawn(move || {
                    let mut line = String::new();
                    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
                    answers.lock().unwrap().push(line);
                });
            }
            while exists && answers.lock().unwrap().len() < count {
                assert_eq!(Snapshot::<u64>::open(&path).unwrap().query(7, 0).unwrap().len(), 1);
            }
        });
        let mut answers = answers.into_inner().unwrap();
        answers.sort();
        let mut expected = vec!["locked\n"; count - 1];
        expected.push("mine\n");
        assert_eq!(answers, expected);
        for mut child in children {
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success());
        }
        // The processes that did not get the store have not damaged it.
        let store = Store::<u64>::open(&path, options()).unwrap();
        assert_eq!(store.query(7, 0).unwrap().len(), usize::from(exists));
    }
}
