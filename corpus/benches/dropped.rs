//! Counts the words that each rule of the text cleaning (profile option `plain-text`) drops from documents. Also lists the
//! documents that lose the largest share of their words to markup rules. Prints Markdown.
//!
//! `cargo bench -p simstore-corpus --bench dropped -- FILE.jsonl.gz ...` lists ten documents of each file; with `--losers=N`, it
//! lists N. The counts before cleaning include the words in front matter, addresses and attributes. In HTML documents, the
//! cleaning drops only front matter.

use std::collections::BTreeMap;
use std::path::PathBuf;

use simstore_io::{DocumentOptions, documents};
use simstore_text::{DropReason, Profile};

type Error = Box<dyn std::error::Error>;

fn count(profile: &Profile, text: &str) -> u64 {
    let mut words = 0;
    profile.visit_features(text, |_, _| words += 1);
    words
}

fn main() -> Result<(), Error> {
    let (mut files, mut losers) = (Vec::new(), 10);
    for arg in std::env::args().skip(1).filter(|arg| arg != "--bench") {
        match arg.split_once('=') {
            Some(("--losers", number)) => losers = number.parse()?,
            _ => files.push(PathBuf::from(arg)),
        }
    }
    let raw: Profile = "words-1,keep-front-matter".parse()?;
    let plain: Profile = "words-1,plain-text".parse()?;
    for file in files {
        let (mut all, mut left, mut lost) = (0, 0, Vec::new());
        let mut by_rule = BTreeMap::<DropReason, (u64, u64)>::new();
        for document in documents(std::slice::from_ref(&file), &DocumentOptions::default()) {
            let document = document?;
            let (before, after) = (count(&raw, &document.text), count(&plain, &document.text));
            (all, left) = (all + before, left + after);
            let mut markup_words = 0;
            let mut words_by_rule = BTreeMap::<DropReason, u64>::new();
            plain.visit_dropped(&document.text, |rule, piece| {
                let words = count(&raw, piece);
                *words_by_rule.entry(rule).or_default() += words;
                markup_words += if rule == DropReason::FrontMatter { 0 } else { words };
            });
            for (rule, words) in words_by_rule {
                let (documents, total) = by_rule.entry(rule).or_default();
                (*documents, *total) = (*documents + 1, *total + words);
            }
            lost.push((markup_words as f64 / before.max(1) as f64, document.id.to_string(), before, after));
        }
        println!("\n{}: {} documents, {all} words, {left} after cleaning\n", file.display(), lost.len());
        println!("| rule | documents | words | share |\n|---|--:|--:|--:|");
        for (rule, (documents, words)) in by_rule {
            println!("| {rule:?} | {documents} | {words} | {:.2}% |", 100.0 * words as f64 / all as f64);
        }
        lost.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("\n| document | words | after cleaning | dropped with markup |\n|---|--:|--:|--:|");
        for (share, id, before, after) in lost.iter().take(losers) {
            println!("| {id} | {before} | {after} | {:.0}% |", 100.0 * share);
        }
    }
    Ok(())
}
