"""An independent reader and writer of simstore stores, in plain Python.

Each module follows one page of the format:

- README.md: `frame`.
- manifest.md: `manifest`, `store`.
- table.md: `table`, `huffman`.
- plan.md: `plan`.
- blocks.md: `blocks`.
- prefix-lines.md: `prefix_lines`.
- chunked.md: `chunked`.
- ids.md: `ids`.
- names.md, notes.md: `id_values`.
- metadata.md: `metadata`.
- tombstones.md: `tombstones`.
- log.md: `log`.
- contents.md: `contents`.
- shards.md: `shards`.
- signature.md, similar.md: `signature`, `similar`.

`as_json` prints the contents for comparison with other readers. The folder `writing` has the writer.
"""
