//! For the texts in `tests/data/presets.tsv`, each preset returns the same fingerprints as the tool that it reproduces, except
//! that the preset `yanyiwu-simhash` returns other fingerprints for 13 of these texts.

use std::fs;

use serde::Deserialize;
use simstore::Fingerprint;
use simstore_text::Preset;

/// Description of a text in the golden file, `tests/data/presets.tsv`: the text itself, a repeated text, a range of code points,
/// or a line of a file in `samples`.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextSource {
    Text(String),
    Repeated { repeats: usize, text: String },
    CodePoints { first: u32, last: u32 },
    Sample { sample: String, line: usize },
}

#[derive(Deserialize)]
struct SampleLine {
    text: String,
}

impl TextSource {
    fn text(self) -> String {
        match self {
            TextSource::Text(text) => text,
            TextSource::Repeated { repeats, text } => text.repeat(repeats),
            TextSource::CodePoints { first, last } => (first..=last).filter_map(char::from_u32).collect(),
            TextSource::Sample { sample, line } => {
                let samples = fs::read_to_string(format!("../samples/{sample}.jsonl")).unwrap();
                let document: SampleLine = serde_json::from_str(samples.lines().nth(line).unwrap()).unwrap();
                document.text
            }
        }
    }
}

fn fingerprint_hex(preset: Preset, text: &str) -> String {
    match preset.bits() {
        64 => preset.fingerprint::<u64>(text).unwrap().fingerprint.to_hex(),
        _ => preset.fingerprint::<u128>(text).unwrap().fingerprint.to_hex(),
    }
}

#[test]
fn golden_fingerprints_of_the_tools() {
    let golden = fs::read_to_string("tests/data/presets.tsv").unwrap();
    let mut lines = golden.lines().skip_while(|line| line.starts_with('#'));
    let names = lines.next().unwrap().split('\t').skip(1);
    let presets: Vec<Preset> = names.map(|name| name.parse().unwrap()).collect();
    assert_eq!(presets, Preset::ALL);
    let mut different = Vec::new();
    let mut cut_otherwise = 0;
    let mut texts = 0;
    for line in lines {
        let mut fields = line.split('\t');
        let source = fields.next().unwrap();
        let text = serde_json::from_str::<TextSource>(source).unwrap().text();
        texts += 1;
        for (&preset, expected) in presets.iter().zip(fields) {
            let found = fingerprint_hex(preset, &text);
            if found == expected {
                continue;
            }
            if preset == Preset::YanyiwuSimhash {
                cut_otherwise += 1;
            } else {
                different.push(format!("{preset} {source}: {found}, the tool gives {expected}"));
            }
        }
    }
    assert!(texts > 1000, "only {texts} texts");
    // In random strings of Han characters between punctuation, cppjieba finds other words (`src/presets/yanyiwu.rs`).
    assert_eq!(cut_otherwise, 13);
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}
