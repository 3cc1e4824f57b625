//! Sections of whole row groups.

use std::path::Path;
use std::sync::Arc;

use parquet::file::metadata::RowGroupMetaData;

use super::{Rows, rows_of};
use crate::DocumentOptions;
use crate::bytes::compression::Compression;
use crate::bytes::section::Section;
use crate::progress::ReadProgress;
use simstore::{Error, Result};

impl Rows {
    /// The rows of a section, counted from its start.
    pub(crate) fn of_section(
        section: &Section,
        options: &DocumentOptions,
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<Rows> {
        let all = Rows::open(&section.path, options, is_projected, progress)?;
        let (from, to) = (section.from as usize, section.to as usize);
        let rows = |groups: &[RowGroupMetaData]| groups.iter().map(rows_of).sum::<u64>();
        let groups = all.footer.metadata().row_groups();
        let Some(before) = groups.get(..to).map(|groups| rows(&groups[..from])) else {
            let reason = format!("{} row groups, expected {to} and more", groups.len());
            return Err(Error::BadInput { path: section.path.to_path_buf(), line: 0, reason });
        };
        section.reached.set_lines(rows(&groups[from..to]));
        section.reached.set_rows_before(before);
        Ok(Rows { next_group: from, end_group: to, before, ..all })
    }

    /// Divides a file into sections of whole row groups, about as many as are asked for; none if it cannot be read.
    pub(crate) fn sections(path: &Path, options: &DocumentOptions, count: u64) -> Vec<Section> {
        let Ok(rows) = Rows::open(path, options, true, &Arc::default()) else { return Vec::new() };
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
                    lines: None,
                    reached: Arc::default(),
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
