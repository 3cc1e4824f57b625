//! A store of texts by their similarity, against the plain loop over all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use simstore::{Codec, PlanChoice, Snapshot, StoreOptions};
use simstore_text::{
    DEFAULT_RECALL, DEFAULT_SIMILAR, Profile, SimilarAddition, SimilarDocuments, SimilarSettings, jaccard,
};

use crate::random::Random;

fn open(path: &Path) -> SimilarDocuments {
    let profile = Profile::shingles();
    SimilarDocuments::open(path, StoreOptions::default(), profile, DEFAULT_SIMILAR, DEFAULT_RECALL).unwrap()
}

/// A text of so many random words.
fn text(random: &mut Random, words: u64) -> Vec<String> {
    (0..words).map(|_| format!("w{:x}", random.next() % 50_000)).collect()
}

/// The text with some words replaced.
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

#[test]
fn small_texts_are_found_as_by_the_plain_loop() {
    let folder = tempfile::tempdir().unwrap();
    let pages = open(&folder.path().join("pages"));
    let mut random = Random(1);
    let mut stored: Vec<(u64, String)> = Vec::new();
    let (mut added, mut refused) = (0, 0);
    for id in 0..600_u64 {
        let words = match stored.len() as u64 {
            some @ 1.. if !id.is_multiple_of(3) => {
                let (_, text) = &stored[(random.next() % some) as usize];
                // A shingle at an end is replaced, or one at each.
                let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                words.push(format!("e{id}"));
                words.remove(if id % 3 == 1 { words.len() - 2 } else { 0 });
                words
            }
            _ => {
                let words = 3 + random.next() % 30;
                text(&mut random, words)
            }
        };
        let text = words.join(" ");
        let like: BTreeMap<u64, f64> = (stored.iter())
            .map(|(id, other)| (*id, similarity(&text, other)))
            .filter(|(_, similarity)| *similarity >= DEFAULT_SIMILAR)
            .collect();
        let found: BTreeMap<u64, f64> = (pages.find(&text).unwrap().iter())
            .inspect(|found| assert_eq!(found.estimate.standard_error, 0.0))
            .map(|found| (found.id, found.estimate.similarity))
            .collect();
        assert_eq!(found, like, "{text}");
        match pages.add(&text, id, None).unwrap() {
            SimilarAddition::Remembered => {
                assert!(like.is_empty());
                added += 1;
                stored.push((id, text));
            }
            SimilarAddition::SimilarTo(earlier) => {
                assert_eq!(earlier.len(), like.len());
                refused += 1;
            }
            SimilarAddition::Empty => panic!("{text}"),
        }
        if id == 300 {
            pages.store().flush().unwrap();
        }
    }
    assert!(added > 200 && refused > 100, "{added} {refused}");
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
        assert_eq!(pages.add(&words.join(" "), id, None).unwrap(), SimilarAddition::Remembered);
        // About n / 27 words make a text 0.8 similar.
        let edits = random.next() % (words.len() as u64 / 24 + 1);
        let copy = edited(&mut random, &words, edits).join(" ");
        let real = similarity(&words.join(" "), &copy);
        let answer = pages.find(&copy).unwrap();
        assert!(answer.iter().all(|document| document.id == id), "{answer:?}");
        for document in &answer {
            let off = (document.estimate.similarity - real).abs();
            far_off += u32::from(off > 3.0 * document.estimate.standard_error + 1e-9);
        }
        // What is well above is found, whatever the estimate is.
        if real >= DEFAULT_SIMILAR + 0.1 {
            above += 1;
            found += answer.len();
        }
    }
    assert!(above > 100 && far_off < 5, "{above} {far_off}");
    assert!(found * 100 >= above * 98, "{found} of {above}");
}

#[test]
fn what_was_removed_is_found_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages");
    let mut random = Random(3);
    for words in [2, 20, 35, 500] {
        let pages = open(&path);
        let (one, other) = (text(&mut random, words).join(" "), text(&mut random, words).join(" "));
        assert_eq!(pages.add(&one, 1, Some("a page")).unwrap(), SimilarAddition::Remembered);
        let refused = pages.add(&other, 1, None).unwrap_err().to_string();
        assert!(refused.contains("id 1 has another text"), "{refused}");
        assert_eq!(pages.find(&one).unwrap()[0].name.as_deref(), Some("a page"));
        assert!(!pages.remove(&other, 1).unwrap() && !pages.remove(&one, 2).unwrap());
        assert!(pages.remove(&one, 1).unwrap());
        assert!(pages.find(&one).unwrap().is_empty() && pages.store().snapshot().is_empty());
        assert!(!pages.remove(&one, 1).unwrap());
        assert_eq!(pages.add(&other, 1, None).unwrap(), SimilarAddition::Remembered);
        drop(pages);
        assert!(open(&path).remove(&other, 1).unwrap());
    }
    assert_eq!(open(&path).add(" \n", 5, None).unwrap(), SimilarAddition::Empty);
    // A text without words is similar to itself alone.
    let pages = open(&path);
    assert_eq!(pages.add("?!", 5, None).unwrap(), SimilarAddition::Remembered);
    assert_eq!(pages.add("!!", 6, None).unwrap(), SimilarAddition::Remembered);
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
                    remembered
                        .fetch_add(u64::from(addition == SimilarAddition::Remembered), Ordering::Relaxed);
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
    let settings = SimilarSettings::of_store(&Snapshot::<u64>::open(&path).unwrap()).unwrap();
    assert_eq!(settings, Some(SimilarSettings::new(DEFAULT_SIMILAR, DEFAULT_RECALL).unwrap()));
    let profile = Profile::shingles();
    let other = SimilarDocuments::open(&path, StoreOptions::default(), profile.clone(), 0.9, 0.95);
    let other = other.unwrap_err().to_string();
    assert!(other.contains("has settings similar 0.8 recall 0.95"), "{other}");
    let plain = folder.path().join("plain");
    let store = simstore::Store::<u64>::open(&plain, StoreOptions::default()).unwrap();
    store.insert(7, 7).unwrap();
    drop(store);
    let plain = SimilarDocuments::open(&plain, StoreOptions::default(), profile, 0.8, 0.95);
    assert!(plain.unwrap_err().to_string().contains("for fingerprints alone"));
}

#[test]
fn a_note_that_is_no_sample_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let pages = open(&folder.path().join("pages"));
    let text = "to be or not to be that is the question";
    pages.add(text, 9, None).unwrap();
    let mut transaction = pages.store().transaction();
    transaction.note(9, &[1, 2, 3]).unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    let error = pages.find(text).unwrap_err().to_string();
    assert!(error.contains("the note of document 9 is no sample"), "{error}");
    let mut transaction = pages.store().transaction();
    transaction.mark("similar", b"similar 0.8 recall x").unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    let error = SimilarSettings::of_store(&pages.store().snapshot()).unwrap_err().to_string();
    assert!(error.contains("`similar 0.8 recall x`"), "{error}");
}

/// A small text, and two long ones that are similar.
fn golden_texts() -> [String; 3] {
    let mut random = Random(5);
    let long = text(&mut random, 300);
    let copy = edited(&mut random, &long, 3);
    ["To be, or not to be, that is the question".to_owned(), long.join(" "), copy.join(" ")]
}

#[test]
fn a_golden_store_of_similar_texts() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden/similar");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let options = StoreOptions {
        codec: Some(Codec::Gap),
        plan: Some(PlanChoice::Auto),
        compaction: false,
        ..StoreOptions::default()
    };
    // A name that stores have which were made before there was `segmented`.
    let profile: Profile = "words-3,strip-markup,simplified,weights=none".parse().unwrap();
    let pages = SimilarDocuments::open(&path, options, profile.clone(), 0.8, 0.95).unwrap();
    pages.store().flush().unwrap();
    let [small, long, copy] = golden_texts();
    pages.add(&small, 1, Some("Hamlet")).unwrap();
    pages.add(&long, 2, None).unwrap();
    let SimilarAddition::SimilarTo(found) = pages.add(&copy, 3, None).unwrap() else { panic!() };
    let mut transaction = pages.store().transaction();
    let settings = SimilarSettings::new(0.8, 0.95).unwrap();
    let copy = settings.keep(&profile.feature_set(&copy)).unwrap();
    copy.insert(&mut transaction, 3, None).unwrap();
    transaction.commit(simstore::Durability::Os).unwrap();
    pages.store().wait_for_background().unwrap();
    drop(pages);

    let files = |store: &Path| -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
        let entries = entries.filter(|path| path.file_name().unwrap() != "LOCK");
        entries
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
            .collect()
    };
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&kept);
        fs::create_dir_all(&kept).unwrap();
        files(&path).into_iter().for_each(|(name, bytes)| fs::write(kept.join(name), bytes).unwrap());
    }
    assert!(files(&path) == files(&kept), "the store is written differently now");

    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/reader.py");
    let read = Command::new("python3").arg(reader).arg("--similar").arg(&kept).args(["2", "3"]).output();
    match read {
        Ok(output) => {
            let estimate = found[0].estimate;
            let expected = format!("{:.6}\t{:.6}\n", estimate.similarity, estimate.standard_error);
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
            assert!(estimate.standard_error > 0.0);
        }
        Err(_) => assert!(std::env::var_os("CI").is_none(), "no Python to run reader.py with"),
    }
}

/// Pages of one template, about 20 words in English, in which the names differ.
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
    let similar = |all: &[f64]| all.iter().filter(|&&similarity| similarity >= DEFAULT_SIMILAR).count();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let english = similarities(&shingles, TEMPLATES[0].1);
    let former: Profile = "words-3,strip-markup,simplified,weights=none".parse().unwrap();
    for (language, template) in TEMPLATES {
        let here = similarities(&shingles, template);
        assert_eq!(similar(&here), similar(&english), "{language}");
        // Chinese, whose words are characters, has the largest.
        assert!((mean(&here) - mean(&english)).abs() < 0.15, "{language} {} {}", mean(&here), mean(&english));
        let before = similarities(&former, template);
        let is_segmented = ["Thai", "Lao", "Khmer", "Burmese"].contains(&language);
        assert_eq!(before != here, is_segmented, "{language}");
        // What it was without words, so that the test can fail.
        assert!(
            !is_segmented
                || similar(&before) > 2 * similar(&english)
                || mean(&before) > mean(&english) + 0.15,
            "{language}"
        );
    }
}
