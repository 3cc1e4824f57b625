//! Output of the contents of one table, or of one block.

use simstore::plan::{TablePlan, min_bits_per_fingerprint};
use simstore::raw::{Segment, Table};
use simstore::{Codec, Fingerprint, Result, Snapshot};
use simstore_corpus::describe::{CodeDescription, SymbolCount, count_symbols, describe_block};

use crate::command_error::{CommandError, CommandResult};
use crate::histogram;
use crate::numbers::{bits_per_item, format_bytes, format_count, format_count_of};
use crate::output::Output;

/// Maximum number of blocks that are counted for the histogram of a table. The histogram would look the same with more
/// blocks.
const MAX_SAMPLED_BLOCKS: usize = 1 << 16;

/// Returns the segment with index `segment`, or an error if it does not exist. Segment 0 is the oldest.
pub(crate) fn find_segment<F: Fingerprint>(
    store: &Snapshot<F>,
    segment: usize,
) -> CommandResult<&Segment<F>> {
    store.segments().get(segment).map(|segment| &**segment).ok_or_else(|| {
        let (path, count) =
            (store.path().display(), format_count_of(store.segments().len() as u64, "segment"));
        CommandError::Failed(format!("{path}: no segment {segment}; it has {count}, numbered from 0"))
    })
}

/// Returns the table with index `table` in a segment, or an error if it does not exist.
pub(crate) fn find_table<F: Fingerprint>(segment: &Segment<F>, table: usize) -> CommandResult<&Table<F>> {
    segment.tables().get(table).ok_or_else(|| {
        let count = format_count_of(segment.tables().len() as u64, "table");
        CommandError::Failed(format!("no table {table}; the segment has {count}, numbered from 0"))
    })
}

/// Draws a histogram of how the fingerprints of a table are coded. `number` is the index of the table, for the title.
/// Fingerprints are counted by the first bit that differs from the previous fingerprint; for codec `gap`, by the top bit of
/// the numeric difference to the previous fingerprint. For codec `all-differences`, [`print_symbols`] draws the histogram.
pub(crate) fn print_histogram<F: Fingerprint>(
    output: &mut Output,
    table: &Table<F>,
    number: usize,
) -> Result<()> {
    let step = table.blocks().div_ceil(MAX_SAMPLED_BLOCKS).max(1);
    let sampling =
        if step == 1 { String::new() } else { format!(", from every {}th block", format_count(step as u64)) };
    let property = match table.header().codec {
        Codec::AllDifferences => {
            return print_symbols(output, &count_symbols(table, step)?, number, &sampling);
        }
        Codec::Gap => "top bit of the difference to the previous fingerprint",
        _ => "first bit that differs from the previous fingerprint",
    };
    let counts = table.differing_bits(step)?;
    output.write_line(format_args!("table {number}, {property}{sampling}"))?;
    output.write_with(|mut out| histogram::draw(&mut out, &counts))
}

/// Draws the histogram of codec `all-differences`, with a line for each bit position h. The first column is the percentage
/// of fingerprints that are coded as a gap (a numeric difference to the previous fingerprint) with top bit 2^h. The other
/// columns are for fingerprints that are coded by their differing bits from an earlier fingerprint, with first differing bit
/// 2^h: the percentages of fingerprints with 0, 1, 2, ... further differing bits. The title has the index of the table
/// (`number`) and the text `sampling`, which says which blocks were counted.
fn print_symbols(output: &mut Output, symbols: &[SymbolCount], number: usize, sampling: &str) -> Result<()> {
    let column = |symbol: &SymbolCount| symbol.differing.map_or(0, |differing| 1 + differing as usize);
    let columns = symbols.iter().map(column).max().unwrap_or(0) + 1;
    let mut headings = vec!["gap".to_owned()];
    headings.extend((0..columns - 1).map(|differing| format!("+{differing}")));
    let row = |h: u32| {
        let mut counts = vec![0; columns];
        symbols
            .iter()
            .filter(|symbol| symbol.h == h)
            .for_each(|symbol| counts[column(symbol)] += symbol.count);
        (h, counts)
    };
    // `count_symbols` returns symbols in ascending order of h.
    let (low, high) =
        (symbols.first().map_or(1, |symbol| symbol.h), symbols.last().map_or(0, |symbol| symbol.h));
    let rows: Vec<_> = (low..=high).rev().map(row).collect();
    output.write_line(format_args!(
        "table {number}, in %{sampling}: gaps with top bit 2^h; fingerprints with first differing bit 2^h, by number of further differing \
         bits"
    ))?;
    output.write_with(|mut out| histogram::draw_rows(&mut out, "h", &headings, &rows))?;
    let percentage = |predicate: &dyn Fn(&SymbolCount) -> bool| {
        let count = |predicate: &dyn Fn(&SymbolCount) -> bool| -> u64 {
            symbols.iter().filter(|&symbol| predicate(symbol)).map(|symbol| symbol.count).sum()
        };
        count(predicate) as f64 * 100.0 / count(&|_| true).max(1) as f64
    };
    output.write_line(format_args!(
        "  coded by differing bits from the previous fingerprint {:.2}%, from an earlier one {:.2}%, as a gap {:.2}%",
        percentage(&|symbol| symbol.differing.is_some() && !symbol.earlier),
        percentage(&|symbol| symbol.earlier),
        percentage(&|symbol| symbol.differing.is_none())
    ))
}

/// Prints the properties of a table, and a histogram of how its fingerprints are coded. `number` is the index of the table in
/// the segment.
pub(crate) fn print_table<F: Fingerprint>(
    output: &mut Output,
    segment: &Segment<F>,
    table: &Table<F>,
    number: usize,
) -> Result<()> {
    let header = table.header();
    let each = bits_per_item(table.file_len(), header.fingerprints);
    let floor = min_bits_per_fingerprint(F::BITS, header.fingerprints);
    output.write_line(format_args!(
        "{}: table {number} of plan {}",
        table.path().display(),
        segment.plan().name()
    ))?;
    output.write_line(format_args!(
        "  fingerprints  {} of {} bits",
        format_count(header.fingerprints),
        F::BITS
    ))?;
    output.write_line(format_args!("  order of bits {}", format_bit_order(&header.plan)))?;
    output.write_line(format_args!(
        "  prefix        {} bits; a probe flips at most {}",
        header.plan.prefix_bits, header.plan.flips
    ))?;
    let restart_points =
        if header.span > 0 { format!(", restart points every {}", header.span) } else { String::new() };
    output.write_line(format_args!("  codec         {}{restart_points}", header.codec))?;
    if let Some(lines) = table.prefix_lines() {
        output.write_line(format_args!(
            "  prefix lines  {} with {} bits of each fingerprint; {} more divide others",
            format_count(lines.lines),
            lines.key_bits,
            format_count(lines.dividing_lines)
        ))?;
    }
    output.write_line(format_args!(
        "  blocks        {} of {} bytes, {:.1} fingerprints each",
        format_count(table.blocks() as u64),
        header.block_size,
        header.fingerprints as f64 / table.blocks().max(1) as f64
    ))?;
    output.write_line(format_args!(
        "  size          {}: {each:.2} bits a fingerprint; lower bound for random fingerprints {floor:.2}",
        format_bytes(table.file_len())
    ))?;
    output.write_line(format_args!("  memory        {}", format_bytes(table.memory() as u64)))?;
    print_histogram(output, table, number)
}

/// Prints a block of a table: the header of the block, then a line for each fingerprint. The array has the indexes of the
/// segment, the table and the block.
pub(crate) fn print_block<F: Fingerprint>(
    output: &mut Output,
    table: &Table<F>,
    [segment, number, block]: [usize; 3],
    json: bool,
) -> CommandResult {
    if block >= table.blocks() {
        let (path, count) = (table.path().display(), format_count_of(table.blocks() as u64, "block"));
        return Err(CommandError::Failed(format!(
            "{path}: no block {block}; it has {count}, numbered from 0"
        )));
    }
    let description = describe_block(table, [segment, number, block])?;
    if json {
        return Ok(output.write_json(&description)?);
    }
    output.write_line(format_args!("{}: block {block} of {}", table.path().display(), table.blocks()))?;
    output.write_line(format_args!("  offset {}, {} bytes", description.offset, description.bytes))?;
    let width = match table.header().codec {
        Codec::EliasFano => "lower bits of each fingerprint",
        Codec::PrefixLines => "bits of each fingerprint after its prefix",
        _ => "bits of a restart point",
    };
    let fingerprints = format_count_of(description.fingerprints as u64, "fingerprint");
    output.write_line(format_args!("  {fingerprints}, {} {width}", description.width))?;
    output.write_line(format_args!("  first {}, last {}, permuted", description.first, description.last))?;
    let digits = F::BYTES * 2;
    let is_all_differences = table.header().codec == Codec::AllDifferences;
    let coding_heading = if is_all_differences { "coded" } else { "symbol" };
    output.write_line(format_args!(
        "  {:>5}  {:<digits$}  {:<digits$}  {coding_heading}",
        "", "permuted", "original"
    ))?;
    for (at, value) in description.values.iter().enumerate() {
        let symbol = match (&value.coded, value.differing_bit) {
            (Some(code), _) if is_all_differences => format_code(code),
            (None, _) if is_all_differences => "restart point".to_owned(),
            (_, None) => format!("{:>6}", "-"),
            (_, Some(bit)) => format!("{bit:>6}"),
        };
        output.write_line(format_args!("  {at:>5}  {}  {}  {symbol}", value.permuted, value.original))?;
    }
    Ok(())
}

/// Describes how codec `all-differences` codes a fingerprint. `gap 33` means that the numeric difference to the previous
/// fingerprint has the top bit 2^33. `differs in 33 and 2 more, 4 back` means that bit 2^33 and two lower bits differ from
/// the fingerprint four places before the previous one.
fn format_code(&CodeDescription { h, differing, back }: &CodeDescription) -> String {
    let differs = match differing {
        None => return format!("gap {h}"),
        Some(0) => format!("differs in {h}"),
        Some(more) => format!("differs in {h} and {more} more"),
    };
    if back == 0 { differs } else { format!("{differs}, {back} back") }
}

/// Formats the order in which a table permutes the bits of its fingerprints, such as `32-63 | 0-31`: the original positions
/// of the prefix bits, then the original positions of all other bits. Consecutive positions form a range.
pub(crate) fn format_bit_order<F: Fingerprint>(plan: &TablePlan<F>) -> String {
    let (prefix, rest) = plan.permutation.sources().split_at(plan.prefix_bits as usize);
    let parts = [prefix, rest].into_iter().filter(|bits| !bits.is_empty());
    parts.map(format_bit_ranges).collect::<Vec<_>>().join(" | ")
}

fn format_bit_ranges(sources: &[u8]) -> String {
    let ranges = sources.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let format = |range: &[u8]| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    ranges.map(format).collect::<Vec<_>>().join(" ")
}
