//! Tests of [`SimilarDocuments`]. Its answers are compared with a loop over all stored texts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use simstore::{PlanChoice, Snapshot, StoreOptions};
use simstore_text::{
    DEFAULT_RECALL, DEFAULT_SIMILARITY, DocumentComparer, EncodedDocument, Profile, Signature,
    SimilarAddition, SimilarDocuments, SimilarSettings, SimilarityEstimate, jaccard,
};

use crate::random::Random;

fn open(path: &Path) -> SimilarDocuments {
    open_with(path, settings())
}

fn settings() -> SimilarSettings {
    SimilarSettings::new(DEFAULT_SIMILARITY, DEFAULT_RECALL).unwrap()
}

fn open_with(path: &Path, settings: SimilarSettings) -> SimilarDocuments {
    SimilarDocuments::open(path, StoreOptions::default(), Profile::shingles(), settings).unwrap()
}

/// Returns `words` random words, which form a text.
fn text(random: &mut Random, words: u64) -> Vec<String> {
    (0..words).map(|_| format!("w{:x}", random.next() % 50_000)).collect()
}

/// Returns a copy of a text's words, in which up to `edits` words are replaced by new words.
fn edited(random: &mut Random, words: &[String], edits: u64) -> Vec<String> {
    let mut words = words.to_vec();
    for _ in 0..edits {
        let at = random.next() % words.len() as u64;
        words[at as usize] = format!("e{:x}", random.next());
    }
    words
}

fn similarity(a: &str, b: &str) -> f64 {
    let profile = Profile::shingles();
    jaccard(&profile.feature_set(a), &profile.feature_set(b))
}

/// Returns an edited copy of a random text in `others`, or a new text of random length.
fn some_text(random: &mut Random, others: &[(u64, String)]) -> String {
    let words = match others.len() as u64 {
        some @ 1.. if !random.next().is_multiple_of(3) => {
            let (_, text) = &others[(random.next() % some) as usize];
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let edits = random.next() % (words.len() as u64 / 20 + 2);
            edited(random, &words, edits)
        }
        _ => {
            let words = 3 + random.next() % if random.next().is_multiple_of(2) { 30 } else { 300 };
            text(random, words)
        }
    };
    words.join(" ")
}

/// In a store that keeps texts, every document that is reported as similar really is similar, and at least 97% of the similar
/// documents are found.
#[test]
fn stored_texts_decide_as_the_plain_loop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let mut pages = open_with(&path, settings().with_texts());
    let mut random = Random(1);
    let mut stored: Vec<(u64, String)> = Vec::new();
    let (mut there, mut found_of, mut refused) = (0, 0, 0);
    for id in 0..1500_u64 {
        let text = some_text(&mut random, &stored);
        let like: BTreeMap<u64, f64> = (stored.iter())
            .map(|(id, other)| (*id, similarity(&text, other)))
            .filter(|(_, similarity)| *similarity >= DEFAULT_SIMILARITY)
            .collect();
        let found: BTreeMap<u64, f64> = (pages.find(&text).unwrap().iter())
            .inspect(|found| assert_eq!(found.estimate.standard_error, 0.0))
            .map(|found| (found.id, found.estimate.similarity))
            .collect();
        assert!(found.iter().all(|(id, similarity)| like.get(id) == Some(similarity)), "{found:?} {like:?}");
        assert!(like.iter().all(|(id, &similarity)| similarity < 1.0 || found.contains_key(id)));
        there += like.len();
        found_of += found.len();
        match pages.add(&text, id, None).unwrap() {
            SimilarAddition::Added => {
                assert!(found.is_empty());
                stored.push((id, text));
            }
            SimilarAddition::SimilarTo(earlier) => {
                assert_eq!(earlier.len(), found.len());
                refused += 1;
            }
            SimilarAddition::Empty => panic!("{text}"),
        }
        match id {
            300 => pages.store().flush().unwrap(),
            900 => {
                drop(pages);
                pages = open_with(&path, settings().with_texts());
            }
            _ => {}
        }
    }
    assert!(refused > 200 && stored.len() > 500, "{refused} {}", stored.len());
    assert!(found_of * 100 >= there * 97, "{found_of} of {there}");
    for (id, text) in &stored {
        assert_eq!(pages.text(*id).unwrap().as_ref(), Some(text));
    }
}

/// A store trains a compression dictionary on its first texts. All texts can be read, whether they were compressed before or
/// after the training.
#[test]
fn texts_come_back_whatever_they_were_compressed_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let pages = open_with(&path, settings().with_texts());
    let mut random = Random(6);
    let texts: Vec<String> = (0..2500).map(|_| text(&mut random, 40).join(" ") + "\n  \u{1f600} ").collect();
    for (id, text) in (0..).zip(&texts) {
        assert_eq!(pages.add(text, id, None).unwrap(), SimilarAddition::Added);
    }
    assert!(pages.store().snapshot().metadata("similar texts 0").unwrap().is_some());
    drop(pages);
    let pages = open_with(&path, settings().with_texts());
    for (id, text) in (0..).zip(&texts) {
        assert_eq!(pages.text(id).unwrap().as_ref(), Some(text));
        assert_eq!(pages.find(text).unwrap()[0].id, id);
    }
    assert_eq!(pages.text(9999).unwrap(), None);
}

#[test]
fn long_texts_are_found_as_often_as_is_promised() {
    let folder = tempfile::tempdir().unwrap();
    let pages = open(&folder.path().join("pages"));
    let mut random = Random(2);
    let (mut found, mut far_off, mut above) = (0, 0, 0);
    for id in 0..400_u64 {
        let length = 60 + random.next() % 400;
        let words = text(&mut random, length);
        assert_eq!(pages.add(&words.join(" "), id, None).unwrap(), SimilarAddition::Added);
        // About n / 27 replaced words lower the similarity to 0.8.
        let edits = random.next() % (words.len() as u64 / 24 + 1);
        let copy = edited(&mut random, &words, edits).join(" ");
        let real = similarity(&words.join(" "), &copy);
        let answer = pages.find(&copy).unwrap();
        assert!(answer.iter().all(|document| document.id == id), "{answer:?}");
        for document in &answer {
            let off = (document.estimate.similarity - real).abs();
            far_off += u32::from(off > 3.0 * document.estimate.standard_error + 1e-9);
        }
        // A document well above the threshold is found, whether its estimate is high or low.
        if real >= DEFAULT_SIMILARITY + 0.1 {
            above += 1;
            found += answer.len();
        }
    }
    assert!(above > 100 && far_off < 5, "{above} {far_off}");
    assert!(found * 100 >= above * 98, "{found} of {above}");
}

#[test]
fn removed_documents_are_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let mut random = Random(3);
    for words in [2, 20, 35, 500] {
        let pages = open(&path);
        let (one, other) = (text(&mut random, words).join(" "), text(&mut random, words).join(" "));
        assert_eq!(pages.add(&one, 1, Some("a page")).unwrap(), SimilarAddition::Added);
        let refused = pages.add(&other, 1, None).unwrap_err().to_string();
        assert!(refused.contains("id 1 already has another text"), "{refused}");
        assert_eq!(pages.find(&one).unwrap()[0].name.as_deref(), Some("a page"));
        assert!(!pages.remove(2).unwrap());
        assert!(pages.remove(1).unwrap());
        assert!(pages.find(&one).unwrap().is_empty() && pages.store().snapshot().is_empty());
        assert!(!pages.remove(1).unwrap());
        assert_eq!(pages.add(&other, 1, None).unwrap(), SimilarAddition::Added);
        drop(pages);
        assert!(open(&path).remove(1).unwrap());
    }
    assert_eq!(open(&path).add(" \n", 5, None).unwrap(), SimilarAddition::Empty);
    // A text without words is similar only to itself.
    let pages = open(&path);
    assert_eq!(pages.add("?!", 5, None).unwrap(), SimilarAddition::Added);
    assert_eq!(pages.add("!!", 6, None).unwrap(), SimilarAddition::Added);
    assert!(
        matches!(pages.add("?!\n", 7, None).unwrap(), SimilarAddition::SimilarTo(found) if found[0].id == 5)
    );
}

#[test]
fn threads_remember_one_of_several_similar_texts() {
    let folder = tempfile::tempdir().unwrap();
    let pages = open(&folder.path().join("pages"));
    let mut random = Random(4);
    for round in 0..20_u64 {
        let texts: Vec<String> = {
            let words = text(&mut random, if round % 2 == 0 { 200 } else { 12 });
            (0..4).map(|_| words.join(" ")).collect()
        };
        let remembered = AtomicU64::new(0);
        thread::scope(|scope| {
            for (id, text) in (round * 4..).zip(&texts) {
                let (pages, remembered) = (&pages, &remembered);
                scope.spawn(move || {
                    let addition = pages.add(text, id, None).unwrap();
                    remembered.fetch_add(u64::from(addition == SimilarAddition::Added), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(remembered.load(Ordering::Relaxed), 1);
        assert_eq!(pages.find(&texts[0]).unwrap().len(), 1);
    }
}

#[test]
fn a_store_is_opened_as_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    drop(open(&path));
    let stored = SimilarSettings::from_store(&Snapshot::<u64>::open(&path).unwrap()).unwrap();
    assert_eq!(stored, Some(settings()));
    let profile = Profile::shingles();
    let at_other = SimilarSettings::new(0.9, 0.95).unwrap();
    for other in [at_other, settings().with_texts()] {
        let other = SimilarDocuments::open(&path, StoreOptions::default(), profile.clone(), other);
        assert!(other.unwrap_err().to_string().contains("has settings similarity >= 0.8, recall 0.95"));
    }
    let other = SimilarDocuments::open(&path, StoreOptions::default(), profile.clone(), at_other);
    let other = other.unwrap_err().to_string();
    assert!(other.contains("has settings similarity >= 0.8, recall 0.95"), "{other}");
    let plain = folder.path().join("plain");
    let store = simstore::Store::<u64>::open(&plain, StoreOptions::default()).unwrap();
    store.insert(7, 7).unwrap();
    drop(store);
    let plain = SimilarDocuments::open(&plain, StoreOptions::default(), profile, settings());
    assert!(plain.unwrap_err().to_string().contains("has type `fingerprints`, not `similar documents`"));
}

#[test]
fn stored_documents_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let pages = open(&folder.path().join("pages"));
    let text = "to be or not to be that is the question";
    pages.add(text, 9, None).unwrap();
    let mut transaction = pages.store().transaction();
    transaction.set_note(9, &[1, 2, 3]).unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    let error = pages.find(text).unwrap_err().to_string();
    assert!(error.contains("the note of document 9 holds bytes that are not a signature"), "{error}");
    let mut transaction = pages.store().transaction();
    transaction.set_metadata("similar", b"similar 0.8 recall x").unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    let error = SimilarSettings::from_store(&pages.store().snapshot()).unwrap_err().to_string();
    assert!(error.contains("`similar 0.8 recall x`"), "{error}");
}

/// Returns the texts of the golden stores: a short text, and two long texts that are similar to each other.
fn golden_texts() -> [String; 3] {
    let mut random = Random(5);
    let long = text(&mut random, 300);
    let copy = edited(&mut random, &long, 3);
    ["To be, or not to be, that is the question".to_owned(), long.join(" "), copy.join(" ")]
}

/// Returns the path of a golden file or store in `format-spec/golden`.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden").join(name)
}

fn reader(arguments: &[&OsStr]) -> Option<String> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/reader.py");
    let Ok(output) = Command::new("python3").arg(reader).args(arguments).output() else {
        assert!(std::env::var_os("CI").is_none(), "no Python to run reader.py with");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn golden_signatures() {
    let kept = golden("signatures");
    let mut made = String::new();
    for (first, count) in [
        (7, 5),
        (0, 1),
        (u64::MAX, 1),
        (1, 2),
        (100, 31),
        (200, 58),
        (300, 64),
        (400, 65),
        (5000, 500),
        (9, 3000),
    ] {
        let features: Vec<u64> = (0..count).map(|at| u64::wrapping_add(first, at)).collect();
        let Signature { bands, sum, .. } = Signature::new(&features).unwrap();
        let numbers: Vec<String> =
            [sum].iter().chain(&bands).map(|number| format!("{number:016x}")).collect();
        made += &format!("{first}\t{count}\t{}\n", numbers.join("\t"));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), made);
    if let Some(read) = reader(&["--signatures".as_ref(), kept.as_os_str()]) {
        assert_eq!(read, made);
    }
}

#[test]
fn golden_shingles() {
    let kept = golden("shingles");
    let mut made = String::new();
    for words in [
        "rose",
        "a rose",
        "a rose is",
        "a a",
        "a a a",
        "one two three four five six seven eight",
        "数 据 库",
        "l'été déjà vu",
        "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    ] {
        let of = |n: usize, text: &str| {
            let profile: Profile = format!("words-{n}").parse().unwrap();
            let [feature] = profile.feature_set(text)[..] else { panic!("{text}") };
            feature
        };
        let hashes: Vec<String> = words.split(' ').map(|word| format!("{:016x}", of(1, word))).collect();
        made += &format!("{words}\t{}\t{:016x}\n", hashes.join(" "), of(hashes.len(), words));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), made);
    if let Some(read) = reader(&["--shingles".as_ref(), kept.as_os_str()]) {
        assert_eq!(read, made);
    }
}

#[test]
fn golden_stores_of_similar_texts() {
    for (name, settings) in [("similar", settings()), ("similar-texts", settings().with_texts())] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let estimate = make_golden(&path, settings);
        let kept = golden(name);
        let files = |store: &Path| -> BTreeMap<String, Vec<u8>> {
            let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
            let is_stored = |path: &PathBuf| {
                path.file_name().unwrap() != "LOCK"
                    && path.extension().is_none_or(|extension| extension != "json")
            };
            let entries = entries.filter(is_stored);
            entries
                .map(|path| {
                    (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
                })
                .collect()
        };
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(&kept).unwrap();
            files(&kept).keys().for_each(|name| fs::remove_file(kept.join(name)).unwrap());
            files(&path).into_iter().for_each(|(name, bytes)| fs::write(kept.join(name), bytes).unwrap());
        }
        assert!(files(&path) == files(&kept), "the store `{name}` is written differently now");
        let ids = ["2".as_ref(), "3".as_ref()];
        if let Some(read) = reader(&["--similar".as_ref(), kept.as_os_str(), ids[0], ids[1]]) {
            let expected = format!("{:.6}\t{:.6}\n", estimate.similarity, estimate.standard_error);
            assert_eq!(read, expected);
            assert!(estimate.standard_error > 0.0);
        }
    }
}

/// Creates a store with the same content as a golden store. Returns the similarity of its last two documents, estimated from their
/// signatures.
fn make_golden(path: &Path, settings: SimilarSettings) -> SimilarityEstimate {
    let options = StoreOptions { plan: Some(PlanChoice::Auto), compaction: false, ..StoreOptions::default() };
    // The profile of stores that were created before the option `segmented` existed.
    let profile: Profile = "words-3,plain-text,simplified,weights=none".parse().unwrap();
    let pages = SimilarDocuments::open(path, options, profile.clone(), settings).unwrap();
    pages.store().flush().unwrap();
    let [small, long, copy] = golden_texts();
    pages.add(&small, 1, Some("Hamlet")).unwrap();
    pages.add(&long, 2, None).unwrap();
    let SimilarAddition::SimilarTo(found) = pages.add(&copy, 3, None).unwrap() else { panic!() };
    assert_eq!(found[0].estimate.standard_error == 0.0, settings.has_texts());
    let texts = DocumentComparer::new(&pages.store().snapshot(), settings, profile.clone()).unwrap();
    let mut transaction = pages.store().transaction();
    let [long, copied] = [&long, &copy].map(|text| Signature::new(&profile.feature_set(text)).unwrap());
    EncodedDocument::new(copied, &copy, &texts).unwrap().insert(&mut transaction, 3, None).unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    pages.store().wait_for_background().unwrap();
    long.estimate(&copied)
}

/// Page templates of about 20 words, with the same content in several languages. Pages of the same template differ only in the
/// names that replace `{a}` and `{b}`.
const TEMPLATES: [(&str, &str); 8] = [
    (
        "English",
        "{a}\n\nThis command is another name of {b}.\n\nRead the page of that command with all its options and examples: help {b}",
    ),
    ("Thai", "{a}\n\nคำสั่งนี้เป็นอีกชื่อหนึ่งของ {b}\n\nอ่านหน้าของคำสั่งนั้นพร้อมตัวเลือกและตัวอย่างทั้งหมด: help {b}"),
    ("Lao", "{a}\n\nຄຳສັ່ງນີ້ແມ່ນອີກຊື່ໜຶ່ງຂອງ {b}\n\nອ່ານໜ້າຂອງຄຳສັ່ງນັ້ນພ້ອມດ້ວຍຕົວເລືອກແລະຕົວຢ່າງທັງໝົດ: help {b}"),
    ("Khmer", "{a}\n\nពាក្យបញ្ជានេះគឺជាឈ្មោះមួយទៀតនៃ {b}\n\nសូមអានទំព័រនៃពាក្យបញ្ជានោះជាមួយជម្រើសនិងឧទាហរណ៍ទាំងអស់៖ help {b}"),
    (
        "Burmese",
        "{a}\n\nဤအမိန့်သည် {b} ၏ နောက်ထပ်အမည်တစ်ခုဖြစ်သည်။\n\nရွေးချယ်စရာများနှင့် ဥပမာများအားလုံးပါဝင်သော ထိုအမိန့်၏ \
         စာမျက်နှာကို ဖတ်ပါ။ help {b}",
    ),
    (
        "Japanese",
        "{a}\n\nこのコマンドは {b} の別名です。\n\nすべてのオプションと例を含むそのコマンドのページを読む: help {b}",
    ),
    ("Chinese", "{a}\n\n此命令是 {b} 的另一个名称。\n\n阅读该命令的页面，其中包含所有选项和示例：help {b}"),
    (
        "Russian",
        "{a}\n\nЭта команда — другое имя команды {b}.\n\nЧитайте страницу той команды со всеми её параметрами и примерами: help {b}",
    ),
];

#[test]
fn pages_that_differ_as_much_are_as_similar_in_every_language() {
    let shingles = Profile::shingles();
    let similarities = |profile: &Profile, template: &str| -> Vec<f64> {
        let page = |i: usize| {
            let target = format!("tool{} run{}", i % 7, i % 3);
            profile.feature_set(&template.replace("{a}", &format!("name{i}")).replace("{b}", &target))
        };
        let pages: Vec<Vec<u64>> = (0..40).map(page).collect();
        let pairs = (0..40).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.map(|(i, j)| jaccard(&pages[i], &pages[j])).collect()
    };
    let similar = |all: &[f64]| all.iter().filter(|&&similarity| similarity >= DEFAULT_SIMILARITY).count();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let english = similarities(&shingles, TEMPLATES[0].1);
    let former: Profile = "words-3,plain-text,simplified,weights=none".parse().unwrap();
    for (language, template) in TEMPLATES {
        let here = similarities(&shingles, template);
        assert_eq!(similar(&here), similar(&english), "{language}");
        // Chinese, whose words are single characters, has the largest similarities.
        assert!((mean(&here) - mean(&english)).abs() < 0.15, "{language} {} {}", mean(&here), mean(&english));
        let before = similarities(&former, template);
        let is_segmented = ["Thai", "Lao", "Khmer", "Burmese"].contains(&language);
        assert_eq!(before != here, is_segmented, "{language}");
        // Counterexample: without word segmentation, the similarities of these languages are too large.
        assert!(
            !is_segmented
                || similar(&before) > 2 * similar(&english)
                || mean(&before) > mean(&english) + 0.15,
            "{language}"
        );
    }
}
