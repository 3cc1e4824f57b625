//! `simstore query`: finds stored fingerprints near a query, or stored documents similar to a text.

use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use simstore::any::Width;
use simstore::batch::{BatchMatch, BatchMethod};
use simstore::error::excerpt;
use simstore::{Fingerprint, Match, Result, Snapshot, each_width};
use simstore_corpus::{InputKind, Item};
use simstore_io::{DocumentFormat, DocumentOptions, documents};
use simstore_text::{DocumentComparer, Profile, SimilarSettings};

use crate::command_error::{CommandError, CommandResult, print_message};
use crate::input_warnings::warn_about_fingerprints;
use crate::inputs;
use crate::numbers::format_count;
use crate::open_store::open_snapshot;
use crate::output::{self, Output, escape_name};
use crate::profile_args::{ProfileArgs, check_bits};
use crate::progress::ProgressDisplay;
use crate::similar_query;

/// Number of queries from a file that are looked up together, in parallel on all threads.
const BATCH_QUERIES: usize = 4096;

const EXAMPLES: &str = "\
Output lines have the columns distance, fingerprint, and id or name, separated by tabs; nearest first, then by fingerprint, then \
by id. With several arguments, a file or `-`, the first column is the queried fingerprint. In names, a backslash is escaped as \
\\\\, a tab as \\t, a line break as \\n or \\r, another control character as \\u{HEX}, the empty name as \\e.

In a store of similar documents, --text and --file print the columns similarity, standard error (0 for an exact similarity), and \
id or name; most similar first. If the store has texts, the similarity is exact.

With --json, a line is an object. In a store of similar documents: similarity, error, id, name and, with --show, text. In other \
stores:
  query        the queried fingerprint, hexadecimal
  fingerprint  the stored fingerprint, hexadecimal
  distance     number of differing bits
  id           number; null in a store without ids
  name         text; missing if the document has no name

Examples:
  simstore query en.simstore 8a3f00c2d1e6b754
  simstore query en.simstore --file page.md --distance 2
  simstore query similar.simstore --file page.md --diff
  simstore fingerprint samples/en.jsonl | simstore query en.simstore - --json
  simstore fingerprint samples/en.jsonl | simstore query en.simstore --batch -";

/// Find stored fingerprints near a query, or stored documents similar to a text
///
/// Finds every stored fingerprint within the distance. An empty result is not an error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueryArgs {
    /// The store
    store: PathBuf,
    /// Fingerprints (16 or 32 hexadecimal digits), or files with lines HEX or HEX<TAB>ID; `-` is standard input
    #[arg(value_name = "FINGERPRINT|FILE", required_unless_present_any = ["text", "file"])]
    queries: Vec<String>,
    /// Text to search for, processed with the store's profile; may begin with a hyphen
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// File with the text to search for; `-` is standard input
    #[arg(long)]
    file: Option<PathBuf>,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Largest distance, in bits [default: the store's distance]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Answer all queries together, which is faster for many queries; takes about 50 bytes of memory a query, and memory for all matches
    #[arg(long)]
    batch: bool,
    /// With --batch: stream (read the whole store once), look-up (look up each query), or auto (the faster one)
    #[arg(long, value_name = "NAME", default_value_t, requires = "batch")]
    method: BatchMethod,
    /// Show the differences between the text (A) and each similar stored text (B), side by side; needs a store with texts
    #[arg(long, conflicts_with_all = ["json", "queries"])]
    diff: bool,
    /// Print each similar stored text after its line; needs a store with texts
    #[arg(long, conflicts_with_all = ["diff", "queries"])]
    show: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Skip, report and count invalid lines [default: the first one ends the command]
    #[arg(long)]
    skip_bad: bool,
}

#[derive(Serialize)]
struct MatchObject<'a> {
    query: String,
    fingerprint: String,
    distance: u32,
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

pub(crate) fn run(args: &QueryArgs, progress: &ProgressDisplay) -> CommandResult {
    each_width!(Width::from_store(&args.store)?, type F => run_queries::<F>(args, progress))
}

/// Runs queries on a store, and prints their matches.
struct QueryPrinter<'a, F> {
    store: &'a Snapshot<F>,
    distance: u32,
    has_names: bool,
    json: bool,
    show_query: bool,
    output: Output,
}

fn run_queries<F: Fingerprint>(args: &QueryArgs, progress: &ProgressDisplay) -> CommandResult {
    let store = open_snapshot::<F>(&args.store)?;
    let is_fingerprint =
        |query: &str| matches!(query.len(), 16 | 32) && query.bytes().all(|b| b.is_ascii_hexdigit());
    let texts = usize::from(args.text.is_some()) + usize::from(args.file.is_some());
    let has_several =
        args.queries.len() + texts > 1 || args.queries.iter().any(|query| !is_fingerprint(query));
    let settings = SimilarSettings::from_store(&store)?;
    if settings.is_some() && !args.queries.is_empty() {
        return Err(CommandError::Usage(format!(
            "{}: a store of similar documents cannot be queried by fingerprint: use --text or --file",
            args.store.display()
        )));
    }
    let mut printer = QueryPrinter {
        distance: args.distance.unwrap_or(store.distance()),
        has_names: store.stats().names > 0,
        json: args.json,
        show_query: has_several,
        output: output::stdout(),
        store: &store,
    };
    let stdin = args.queries.iter().filter(|query| *query == "-").count()
        + usize::from(args.file.as_deref() == Some(Path::new("-")));
    if stdin > 1 {
        return Err(CommandError::Usage("standard input (`-`) can be read only once".to_owned()));
    }

    let mut batch = Vec::new();
    for query in &args.queries {
        if is_fingerprint(query) {
            batch.push(F::parse_hex(query)?);
            continue;
        }
        let exists = Path::new(query).try_exists();
        if query != "-"
            && !exists
                .map_err(|error| CommandError::Failed(format!("{}: cannot find: {error}", excerpt(query))))?
        {
            return Err(CommandError::Failed(format!(
                "{}: neither a fingerprint ({} hexadecimal digits) nor a file",
                excerpt(query),
                F::BYTES * 2
            )));
        }
        let queries = inputs::open(&[query.into()], DocumentOptions::default(), args.skip_bad)?;
        let visitor = |item: Item<F>| {
            batch.extend(item.fingerprint);
            if batch.len() >= BATCH_QUERIES && !args.batch { printer.print_each(&mut batch) } else { Ok(()) }
        };
        let counts = queries.visit_fingerprints(progress, visitor)?;
        warn_about_fingerprints(&counts, InputKind::Fingerprints, progress);
    }
    if texts > 0 {
        let profile = query_profile(args, &store)?;
        if settings.is_some() && (args.distance.is_some() || args.batch) {
            let message = "--distance and --batch need a store of fingerprints; this store compares texts by similarity";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let texts = args.text.iter().map(|text| Ok(text.clone()));
        if args.diff || args.show {
            let option = if args.diff { "--diff" } else { "--show" };
            if !settings.is_some_and(|settings| settings.has_texts()) {
                let store = args.store.display();
                return Err(CommandError::Usage(format!(
                    "{option}: {store} has no texts; create a store with `simstore add --similar S --with-texts`"
                )));
            }
        }
        let text_output = similar_query::TextOutput::from_flags(args.diff, args.show);
        for text in texts.chain(args.file.iter().map(|file| read_text(file))) {
            if let Some(settings) = &settings {
                let comparer = DocumentComparer::new(&store, *settings, profile.clone())?;
                similar_query::print_similar(
                    &store, &comparer, &text?, text_output, args.json, &mut printer.output,
                )?;
                continue;
            }
            batch.push(fingerprint_text(&profile, &text?)?);
        }
    }
    if args.batch {
        printer.print_batch(&batch, args.method, progress)?;
    } else {
        printer.print_each(&mut batch)?;
    }
    Ok(printer.output.finish()?)
}

/// Reads the text of a file in any supported compression and encoding.
fn read_text(path: &Path) -> CommandResult<String> {
    let options = DocumentOptions { format: Some(DocumentFormat::Text), ..DocumentOptions::default() };
    let mut texts = documents(&[path.to_path_buf()], &options);
    match (texts.next(), texts.next()) {
        (Some(text), None) => Ok(text?.text),
        _ => Err(CommandError::Usage(format!("{}: expected one text, found several", path.display()))),
    }
}

/// Returns the profile for query texts: the profile that the store records, else the profile that the options select. If
/// there is neither, warns and returns the default profile.
fn query_profile<F: Fingerprint>(args: &QueryArgs, store: &Snapshot<F>) -> CommandResult<Profile> {
    if store.profile().is_empty() && !args.profile.is_requested() {
        let profile = Profile::default();
        print_message(&format!(
            "warning: the store has no text profile; using `{profile}` (select another with --profile)"
        ));
        return Ok(profile);
    }
    let profile = args.profile.profile(Some(store.profile()))?;
    check_bits::<F>(&profile)?;
    Ok(profile)
}

fn fingerprint_text<F: Fingerprint>(profile: &Profile, text: &str) -> CommandResult<F> {
    let Some(simhash) = profile.fingerprint::<F>(text) else {
        return Err(CommandError::Failed(
            "the text has no fingerprint, because it has no letters or digits".to_owned(),
        ));
    };
    if simhash.is_short() {
        print_message("warning: the text is too short for a reliable fingerprint");
    }
    Ok(simhash.fingerprint)
}

impl<F: Fingerprint> QueryPrinter<'_, F> {
    /// Looks up each query of the batch in parallel, and prints the matches in the order of the queries. Clears the batch.
    fn print_each(&mut self, batch: &mut Vec<F>) -> Result<()> {
        let (store, distance) = (self.store, self.distance);
        let results: Vec<Result<Vec<Match<F>>>> =
            batch.par_iter().map(|&query| store.query(query, distance)).collect();
        for (query, matches) in batch.drain(..).zip(results) {
            for found in matches? {
                self.print_match(query, found)?;
            }
        }
        Ok(())
    }

    /// Runs all queries as one batch query with the given method, and prints a summary and the matches.
    fn print_batch(&mut self, queries: &[F], method: BatchMethod, progress: &ProgressDisplay) -> Result<()> {
        let method = match method {
            BatchMethod::Auto => self.store.batch_method(queries.len(), self.distance),
            method => method,
        };
        let started = progress.elapsed_seconds();
        let matches = self.store.batch_query_by(queries, self.distance, method)?;
        progress.print_summary(&format!(
            "queries: {}, matches: {}, method: {method}, {:.1} s",
            format_count(queries.len() as u64),
            format_count(matches.len() as u64),
            progress.elapsed_seconds() - started
        ));
        matches
            .into_iter()
            .try_for_each(|BatchMatch { query, found }| self.print_match(queries[query], found))
    }

    fn print_match(&mut self, query: F, found: Match<F>) -> Result<()> {
        let Match { fingerprint, distance, id } = found;
        let name = match id {
            Some(id) if self.has_names => self.store.name(id)?,
            _ => None,
        };
        if self.json {
            let (query, fingerprint) = (query.to_hex(), fingerprint.to_hex());
            return self.output.write_json(&MatchObject {
                query,
                fingerprint,
                distance,
                id,
                name: name.as_deref(),
            });
        }
        if self.show_query {
            self.output.write_bytes(query.to_hex().as_bytes())?;
            self.output.write_bytes(b"\t")?;
        }
        let label = match (&name, id) {
            (Some(name), _) => escape_name(name).into_owned(),
            (None, Some(id)) => id.to_string(),
            (None, None) => String::new(),
        };
        let separator = if label.is_empty() { "" } else { "\t" };
        self.output.write_line(format_args!("{distance}\t{}{separator}{label}", fingerprint.to_hex()))
    }
}
