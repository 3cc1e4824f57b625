"""The contents of a store or log as JSON, for comparison with other readers.

Ids, file numbers and sequence numbers are decimal strings, since JSON numbers of other languages are exact only to 2^53. Fingerprints
are hexadecimal strings of all their digits. Other bytes are hexadecimal strings.
"""

import os


def store_as_json(store):
    manifest = store.manifest
    bits = manifest.bits
    highest = manifest.highest_id
    pairs = [pair_as_json(pair, bits) for pair in sorted(store.pairs)]
    return {
        "bits": bits,
        "distance": manifest.distance,
        "codec": manifest.codec,
        "ids": manifest.has_ids,
        "profile": manifest.profile,
        "plan": manifest.plan,
        "highest_id": None if highest is None else str(highest),
        "pairs": pairs if manifest.has_ids else [pair[:1] for pair in pairs],
        "names": {str(identifier): name for identifier, name in sorted(store.names.items())},
        "notes": {str(identifier): note.hex() for identifier, note in sorted(store.notes.items())},
        "metadata": {key: store.metadata[key].hex() for key in sorted(store.metadata, key=str.encode)},
        "segments": [segment_as_json(segment, bits) for segment in store.segments],
        "logs": [log_as_json(log) for log in store.logs],
    }


def hex_digits(fingerprint, bits):
    return f"{fingerprint:0{bits // 4}x}"


def pair_as_json(pair, bits):
    return [hex_digits(pair[0], bits), str(pair[1])]


def segment_as_json(segment, bits):
    return {
        "number": str(segment.number),
        "tables": [table_as_json(table) for table in segment.tables],
        "tombstones": [pair_as_json(pair, bits) for pair in segment.deleted],
    }


def table_as_json(table):
    return {
        "file": os.path.basename(table.path),
        "codec": table.codec,
        "prefix_bits": table.prefix_bits,
        "flips": table.flips,
        "block_size": table.block_size,
        "span": table.span,
        "permutation": table.permutation,
        "code_lengths": {str(symbol): length for symbol, length in table.code_lengths.items()},
        "lines": table.lines,
        "dividing_lines": table.dividing_lines,
        "key_bits": table.key_bits,
        "blocks": [[hex_digits(value, table.bits) for value in block] for block in table.blocks],
    }


def log_as_json(log):
    return {
        "number": str(log.number),
        "first_sequence": None if log.first_sequence is None else str(log.first_sequence),
        "records": [
            {"sequence": str(sequence), "operations": [operation_as_json(operation, log.bits) for operation in operations]}
            for sequence, operations in log.records
        ],
        "closed": log.closed,
        "torn_bytes": log.torn,
    }


def operation_as_json(operation, bits):
    kind, *fields = operation
    if kind == "metadata":
        return [kind, fields[0], fields[1].hex()]
    if kind == "note":
        return [kind, str(fields[0]), fields[1].hex()]
    return [kind, *pair_as_json(fields, bits), *(name for name in fields[2:] if name is not None)]
