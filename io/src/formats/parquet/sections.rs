//! Divides Parquet files into sections of whole row groups, and reads the sections.

use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::RowGroupMetaData;

use super::{ParquetRows, group_rows};
use crate::DocumentOptions;
use crate::bytes::compression::Compression;
use crate::bytes::section::Section;
use crate::read_progress::ReadProgress;
use simstore::{Error, Result};

impl ParquetRows {
    /// Opens the rows of a section. The rows are numbered from the start of the section.
    pub(crate) fn from_section(
        section: &Section,
        options: &DocumentOptions,
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<ParquetRows> {
        let all = ParquetRows::open(&section.path, options, is_projected, progress)?;
        let (from, to) = (section.from as usize, section.to as usize);
        let rows = |groups: &[RowGroupMetaData]| groups.iter().map(group_rows).sum::<u64>();
        let groups = all.footer.metadata().row_groups();
        let Some(before) = groups.get(..to).map(|groups| rows(&groups[..from])) else {
            let reason = format!("{} row groups, expected {to} and more", groups.len());
            return Err(Error::BadInput { path: section.path.to_path_buf(), line: 0, reason });
        };
        section.outcome.set_lines(rows(&groups[from..to]));
        section.outcome.set_rows_before(before);
        Ok(ParquetRows { next_group: from, end_group: to, rows_before: before, ..all })
    }

    /// Divides a file into about `count` sections of whole row groups. Returns no sections if the file cannot be
    /// opened.
    pub(crate) fn split_into_sections(path: &Path, options: &DocumentOptions, count: u64) -> Vec<Section> {
        let Ok(rows) = ParquetRows::open(path, options, true, &Arc::default()) else { return Vec::new() };
        let groups = rows.footer.metadata().row_groups();
        let bytes_of = |group: &RowGroupMetaData| u64::try_from(group.compressed_size()).unwrap_or(0);
        let total: u128 = groups.iter().map(|group| u128::from(bytes_of(group))).sum();
        let (mut sections, mut before) = (Vec::<(u128, Section)>::new(), 0_u128);
        for (group, metadata) in (0..).zip(groups) {
            let number = before * u128::from(count) / total.max(1);
            before += u128::from(bytes_of(metadata));
            if sections.last().is_none_or(|(last, _)| *last < number) {
                let section = Section {
                    path: path.into(),
                    compression: Compression::None,
                    memory: None,
                    from: group,
                    to: group,
                    bytes: 0,
                    is_last: false,
                    line_format: None,
                    outcome: Arc::default(),
                };
                sections.push((number, section));
            }
            if let Some((_, section)) = sections.last_mut() {
                section.to = group + 1;
                section.bytes += bytes_of(metadata);
                section.is_last = group + 1 == groups.len() as u64;
            }
        }
        sections.into_iter().map(|(_, section)| section).collect()
    }
}
