//! Tests of the type `Inputs`: detection of documents or fingerprints, pipes, visits of all records, and data in memory.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use simstore::Error;
use simstore_corpus::{
    Diagnostic, FingerprintBlock, InputCounts, InputKind, Inputs, Item, ItemOrBlock, Observer, StageProgress,
};
use simstore_io::{Document, DocumentId, DocumentOptions, DocumentWriter, input_files};
use simstore_text::Profile;

use crate::TempFolder;

/// Records the stages that have ended and the errors of malformed records. Cancels the job at progress report number
/// `stops_at`, counted from 1.
#[derive(Default)]
struct InputRecorder {
    stops_at: u64,
    reports: AtomicU64,
    stages: Mutex<Vec<&'static str>>,
    malformed: Mutex<Vec<String>>,
}

impl Observer for InputRecorder {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        match self.reports.fetch_add(1, Ordering::Relaxed) + 1 == self.stops_at {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn stage_ended(&self, stage: &'static str) {
        self.stages.lock().unwrap().push(stage);
    }

    fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        if let Diagnostic::Malformed(error) = diagnostic {
            self.malformed.lock().unwrap().push(error.to_string());
        }
    }
}

fn inputs(path: PathBuf) -> Inputs {
    Inputs::new(&[path], DocumentOptions::default()).unwrap()
}

fn visited(inputs: &Inputs) -> Vec<(u64, String)> {
    let mut items = Vec::new();
    let take = |item: Item<u64>| {
        items.push((item.position, item.id.to_string()));
        Ok(())
    };
    inputs.visit(&Profile::default(), &(), take).unwrap();
    items
}

#[cfg(unix)]
mod pipes {
    use std::process::Command;
    use std::thread::JoinHandle;

    use super::*;

    /// Makes a named pipe, and writes `contents` to it in a thread. Replaces an earlier pipe at the same path.
    fn pipe(path: &PathBuf, contents: &'static str) -> JoinHandle<()> {
        let _ = std::fs::remove_file(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, contents).unwrap())
    }

    const DOCUMENTS: &str = "{\"id\": \"a\", \"text\": \"to be\"}\n{\"id\": \"b\", \"text\": \"or not\"}\n";
    const FINGERPRINTS: &str = "0000000000000007\tc\n0000000000000008\td\n";

    fn ids(inputs: &Inputs) -> Vec<String> {
        visited(inputs).into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn two_jobs_in_one_process_do_not_know_of_each_other() {
        let folder = TempFolder::new();
        let path = folder.0.path().join("pipe");
        let writer = pipe(&path, DOCUMENTS);
        let first = inputs(path.clone());
        assert_eq!(first.kind().unwrap(), InputKind::Documents);
        writer.join().unwrap();

        let writer = pipe(&path, FINGERPRINTS);
        let second = inputs(path.clone());
        assert_eq!(second.kind().unwrap(), InputKind::Fingerprints);
        writer.join().unwrap();
        assert_eq!((ids(&first), ids(&second)), (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]));
    }

    #[test]
    fn spooled_inputs_belong_to_one_job() {
        let folder = TempFolder::new();
        let path = folder.0.path().join("pipe");
        let aside = |contents| {
            let writer = pipe(&path, contents);
            let inputs = inputs(path.clone());
            inputs.kind().unwrap();
            inputs.spool().unwrap();
            writer.join().unwrap();
            inputs
        };
        let (first, second) = (aside(DOCUMENTS), aside(FINGERPRINTS));
        for _ in 0..3 {
            assert_eq!(ids(&first), ["a", "b"]);
            assert_eq!(ids(&second), ["c", "d"]);
        }
        // New inputs read the new contents of the pipe. Inputs made from others share their spooled data.
        let writer = pipe(&path, DOCUMENTS);
        drop(second);
        assert_eq!(ids(&inputs(path.clone())), ["a", "b"]);
        writer.join().unwrap();
        assert_eq!(ids(&first.with_paths(vec![path])), ["a", "b"]);
    }

    #[test]
    fn a_pipe_is_named_once() {
        let folder = TempFolder::new();
        let path = folder.0.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for path in [path, PathBuf::from("-")] {
            let twice = Inputs::new(&[path.clone(), path.clone()], DocumentOptions::default());
            assert!(
                matches!(&twice, Err(Error::BadArgument(reason)) if reason.ends_with("can be read only once"))
            );
            assert_eq!(inputs(path.clone()).read_once_paths().collect::<Vec<_>>(), [path]);
        }
    }
}

#[test]
fn inputs_are_of_one_kind() {
    let folder = TempFolder::new();
    let (documents, fingerprints) = (folder.file("a.jsonl", "{}"), folder.file("b.hex", ""));
    let mixed = Inputs::new(&[documents, fingerprints], DocumentOptions::default()).unwrap();
    assert!(
        matches!(mixed.kind(), Err(Error::BadArgument(reason)) if reason.contains("must all be documents or all"))
    );
    // An unreadable file does not decide the kind if another file does.
    let (broken, whole) =
        (folder.file("broken.dat", b"\x7fELF\x02\x01\x01\0\0\0\0\0"), folder.file("c.u64", [0; 8]));
    let both = Inputs::new(&[broken.clone(), whole], DocumentOptions::default()).unwrap();
    assert_eq!(both.kind().unwrap(), InputKind::Fingerprints);
    assert_eq!(inputs(broken.clone()).skip_malformed(true).kind().unwrap(), InputKind::Documents);
    assert!(matches!(inputs(folder.0.path().join("none")).kind(), Err(Error::Io { .. })));
}

#[test]
fn malformed_documents_end_a_visit_or_are_reported() {
    let folder = TempFolder::new();
    let path = folder.file(
        "a.jsonl",
        "{\"id\": 1, \"text\": \"to be\"}\nno JSON\n{\"id\": 3, \"text\": \"\"}\n{\"id\": 4, \"text\": null}\n",
    );
    let recorder = InputRecorder::default();
    let refuse_three = |item: Item<u64>| match item.id.to_string().as_str() {
        "3" => Err(item.malformed("three".to_owned())),
        _ => Ok(()),
    };
    let visit = |inputs: &Inputs| inputs.visit(&Profile::default(), &recorder, refuse_three);
    assert!(matches!(visit(&inputs(path.clone())), Err(Error::BadInput { line: 2, .. })));
    assert!(recorder.malformed.lock().unwrap().is_empty());
    let counts = visit(&inputs(path).skip_malformed(true)).unwrap();
    assert_eq!((counts.read, counts.empty, counts.short, counts.malformed), (2, 1, 1, 2));
    let messages = recorder.malformed.lock().unwrap();
    assert!(messages[0].contains("a.jsonl:2: ") && messages[1].ends_with("a.jsonl:3: three"), "{messages:?}");
    assert_eq!(*recorder.stages.lock().unwrap(), ["documents", "documents"]);
}

#[test]
fn fingerprints_come_by_the_block() {
    let folder = TempFolder::new();
    let raw: Vec<u8> = (0..20_000_u64).flat_map(u64::to_le_bytes).collect();
    let paths = [folder.file("a.hex", "0000000000000007\tx\n0000000000000008\n"), folder.file("b.u64", raw)];
    let inputs = Inputs::new(&paths, DocumentOptions::default()).unwrap();
    let (mut all, mut blocks) = (Vec::new(), 0);
    let counts = inputs.visit_blocks::<u64>(&(), |piece| {
        match piece {
            ItemOrBlock::Item(item) => all.push((item.position, item.line, item.fingerprint.unwrap())),
            ItemOrBlock::Block(FingerprintBlock { fingerprints, position, line, .. }) => {
                blocks += 1;
                let block = (0..).zip(fingerprints);
                all.extend(block.map(|(i, &fingerprint)| (position + i, line + i, fingerprint)));
            }
        }
        Ok(())
    });
    assert_eq!(counts.unwrap(), InputCounts { read: 20_002, ..InputCounts::default() });
    let expected = [(0, 1, 7), (1, 2, 8)].into_iter().chain((0..20_000).map(|i| (i + 2, i + 1, i)));
    assert!(all.into_iter().eq(expected) && blocks > 1);
    assert_eq!(visited(&inputs).len(), 20_002);
}

#[test]
fn an_observer_cancels_a_visit() {
    let folder = TempFolder::new();
    let lines: String = (0..5000).map(|i| format!("{{\"id\": {i}, \"text\": \"text {i}\"}}\n")).collect();
    let hex: String = (0..5000).map(|i| format!("{i:016x}\n")).collect();
    for path in [folder.file("a.jsonl", lines), folder.file("a.hex", hex)] {
        let mut seen = Vec::new();
        for stops_at in 1..=5 {
            let recorder = InputRecorder { stops_at, ..InputRecorder::default() };
            let mut count = 0;
            let stopped = inputs(path.clone()).visit::<u64>(&Profile::default(), &recorder, |_| {
                count += 1;
                Ok(())
            });
            assert!(matches!(stopped, Err(Error::Cancelled)), "{stops_at}: {stopped:?}");
            seen.push(count);
        }
        // Progress is reported before the first item, and at least once for every 1,024 items.
        assert!(
            seen[0] == 0 && seen.iter().zip(0..).all(|(&count, reports)| count <= reports * 1024),
            "{seen:?}"
        );
    }
}

#[test]
fn files_are_those_that_are_read() {
    let folder = TempFolder::new();
    folder.file("b/b.txt", "b");
    folder.file("a.jsonl", "{}\n");
    let paths = [folder.0.path().to_path_buf()];
    let inputs = Inputs::new(&paths, DocumentOptions::default()).unwrap();
    let files: Vec<_> = inputs.files().map(Result::unwrap).collect();
    assert_eq!(files, input_files(&paths, inputs.options()).map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!((files.len(), inputs.total_bytes()), (2, Some(4)));
    let only = inputs.with_paths(vec![files[1].path.clone()]);
    assert_eq!((only.files().count(), only.total_bytes()), (1, Some(1)));
}

fn document(id: DocumentId, text: &str, extra: Option<&str>) -> Document {
    Document { extra: extra.map(str::to_owned), ..Document::new(id, text.to_owned()) }
}

#[test]
fn documents_that_are_given() {
    let name = |name: &str| DocumentId::Name(name.to_owned());
    let given = [
        document(DocumentId::Number(7), "to be\n\u{0}\u{feff}\"", Some("1")),
        document(name("7"), "", None),
        document(name("a\t\n\u{1f600}"), "或不", Some("x\ny")),
    ];
    let inputs = Inputs::from_documents(given.clone().map(Ok));
    assert_eq!(inputs.kind().unwrap(), InputKind::Documents);
    assert_eq!((inputs.read_once_paths().count(), inputs.total_bytes()), (1, None));
    inputs.spool().unwrap();
    for _ in 0..2 {
        let read: Vec<Document> = inputs.documents().map(Result::unwrap).collect();
        let expected = (1..).zip(given.clone()).map(|(line, document)| Document { line, ..document });
        assert!(read.iter().cloned().eq(expected), "{read:?}");
    }
    let mut writer = DocumentWriter::new(Vec::new());
    let refused = writer.write(&inputs.records().next().unwrap().unwrap(), None).unwrap_err();
    assert_eq!(refused.to_string(), "documents:1: is not from a file");

    // Unless they are spooled, they can be read once. A second reading is an error, not an empty input.
    let many = (0..3000).map(|i| document(DocumentId::Number(i), &"word ".repeat(i as usize % 100), None));
    let inputs = Inputs::from_documents(many.map(Ok)).skip_malformed(true);
    assert_eq!(visited(&inputs).len(), 3000);
    assert!(matches!(inputs.documents().next(), Some(Err(Error::Refused(_)))));
}

#[test]
fn fingerprints_that_are_given() {
    let fingerprints: Vec<u64> = (0..100_000).map(|i| i * i).collect();
    let inputs = Inputs::from_fingerprints(fingerprints.clone(), None).unwrap();
    assert_eq!(inputs.kind().unwrap(), InputKind::Fingerprints);
    let mut all = Vec::new();
    let counts = inputs.visit_blocks::<u64>(&(), |piece| {
        let ItemOrBlock::Block(block) = piece else { panic!("{piece:?}") };
        assert_eq!((block.position, block.line), (all.len() as u64, all.len() as u64 + 1));
        all.extend_from_slice(block.fingerprints);
        Ok(())
    });
    assert_eq!((counts.unwrap().read, all), (100_000, fingerprints));
    assert_eq!(visited(&inputs)[99_999], (99_999, "99999".to_owned()));
    let wide = inputs.visit::<u128>(&Profile::default(), &(), |_| Ok(()));
    assert!(
        matches!(wide, Err(Error::BadArgument(reason)) if reason == "the fingerprints have 64 bits, not 128")
    );

    let ids = vec![DocumentId::Name("a\t\nb".into()), DocumentId::Number(7)];
    let named = Inputs::from_fingerprints(vec![1_u128, 2], Some(ids.clone())).unwrap();
    let mut found = Vec::new();
    let counts = named.visit_blocks::<u128>(&(), |piece| {
        let ItemOrBlock::Item(item) = piece else { panic!("{piece:?}") };
        found.push((item.fingerprint.unwrap(), item.id, item.has_id));
        Ok(())
    });
    assert_eq!(counts.unwrap().read, 2);
    assert_eq!(found, [(1, ids[0].clone(), true), (2, ids[1].clone(), true)]);
    assert!(matches!(Inputs::from_fingerprints(vec![1_u64], Some(ids)), Err(Error::BadArgument(_))));
}
