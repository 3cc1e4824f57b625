#!/usr/bin/env python3
"""Reads simstore stores. Written from the pages beside this file alone, so it checks the writer against the specification.

    python3 reader.py STORE                 HEX<TAB>ID<TAB>NAME lines, ascending
    python3 reader.py --marks STORE         KEY<TAB>HEX lines: the marks of a writer
    python3 reader.py --notes STORE         ID<TAB>HEX lines: the notes of documents
    python3 reader.py --similar STORE ID ID the estimated similarity of two documents, and its standard error
    python3 reader.py --sketches FILE       for ranges of consecutive features: their sum and bands
    python3 reader.py --shingles FILE       for runs of words with the hashes of the words: the hash of each run
    python3 reader.py --table FILE.table    the header, then the permuted fingerprints
    python3 reader.py --log FILE.log        the header, then the operations, each after the number of its record
    python3 reader.py --shards FOLDER       HEX<TAB>ID lines, ascending, of all shards

Slow and strict: decodes every table, checks every checksum, and compares all tables with one another. A torn tail of the last log,
which is damage or the trace of a crash, is reported on standard error. Needs Python 3.8 or newer and only its standard library. As a
library: `Store(path)`, `Table(path)`, `Log(path)` and `Shards(path)` raise `Damaged` for an invalid file.
"""

import collections
import itertools
import json
import os
import re
import struct
import sys
import zlib

VERSION, WITH_NOTES, WITH_ALL_DIFFERENCES, WITH_PREFIX_LINES = 3, 4, 5, 6
CODECS = ["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"]
# Versions of tables and manifests by codec; other codecs have version 3.
CODEC_VERSIONS = {"all-differences": WITH_ALL_DIFFERENCES, "prefix-lines": WITH_PREFIX_LINES}
MAX_CODE_LENGTH = 12
# A plan is rejected if the check of its completeness visits more patterns.
MAX_PATTERNS = 1000000


class Damaged(Exception):
    """A file violates the format."""


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Damaged("%s: %s" % (path, error.strerror)) from error


def u16(data, at):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def ascending(values):
    return all(a < b for a, b in zip(values, values[1:]))


class Bits:
    """A bit string in bytes: bit i is bit i % 8 of byte i // 8, counted from the least significant."""

    def __init__(self, data):
        self.data = data
        self.len = 8 * len(data)

    def read(self, at, count):
        """Returns `count` bits from bit `at` as a number. The first is the least significant."""
        part = int.from_bytes(self.data[at // 8 : (at + count + 7) // 8], "little")
        return part >> at % 8 & ((1 << count) - 1)


class File:
    """A file of a store. It starts with magic bytes and a version, and ends with the same magic bytes."""

    def __init__(self, path, magic, footer_len, versions=(VERSION,)):
        self.path = path
        self.data = read_file(path)
        data = self.data
        self.check(len(data) >= 12, "cut short: %d bytes" % len(data))
        self.check(data[:8] == magic, "starts with %r, not with %r" % (data[:8], magic))
        self.version = u32(data, 8)
        self.check(self.version in versions, "format version %d" % self.version)
        self.check(len(data) >= 12 + footer_len, "cut short: %d bytes" % len(data))
        self.check(data[-8:] == magic, "ends with %r, not with %r" % (data[-8:], magic))
        self.footer = len(data) - footer_len

    def check(self, sound, problem):
        if not sound:
            raise Damaged("%s: %s" % (self.path, problem))

    def check_crc(self, expected, data, part):
        found = zlib.crc32(data)
        self.check(expected == found, "checksum of the %s is %08x, expected %08x" % (part, found, expected))

    def check_zero(self, start, end, part):
        self.check(not any(self.data[start:end]), "%s: bytes %d to %d are not zero" % (part, start, end))

    def check_part(self, number, data, part):
        """Compares a block or chunk with its checksum, which covers its number and the bytes after the checksum."""
        found = zlib.crc32(data[4:], zlib.crc32(struct.pack("<Q", number)))
        self.check(u32(data, 0) == found, "checksum of the %s is %08x" % (part, found))


# Tables: table.md


def code_words(lengths):
    """Returns the canonical code with the given lengths: {(length, word): symbol}."""
    words = {}
    word = 0
    for length in range(1, MAX_CODE_LENGTH + 1):
        for symbol, other in enumerate(lengths):
            if other == length:
                words[length, word] = symbol
                word += 1
        word <<= 1
    return words


def is_code(lengths):
    used = [length for length in lengths if length]
    if any(length > MAX_CODE_LENGTH for length in used):
        return False
    filled = sum(2 ** (MAX_CODE_LENGTH - length) for length in used)
    return not used or used == [1] or (len(used) > 1 and filled == 2**MAX_CODE_LENGTH)


def position_length(h):
    return (h - 1).bit_length() if h > 1 else 0


# Prefix lines: prefix-lines.md


class LineShape:
    """How arithmetic leads from a key of `key_bits` bits to its line."""

    def __init__(self, key_bits, low_bits, lines):
        self.key_bits, self.low_bits, self.lines = key_bits, low_bits, lines
        self.buckets = 1 << key_bits - low_bits
        self.slots = -(-self.buckets // lines)

    def first_bucket(self, line):
        return -(-line * self.buckets // self.lines)

    def slot(self, bucket):
        return bucket * self.lines % self.buckets * self.slots // self.buckets


class PrefixLines:
    """The keys of all lines of a table, in order."""

    def __init__(self, table, data, main, lines, key_bits):
        self.check, self.main = table.check, main
        self.lines = [data[i * 64 : i * 64 + 64] for i in range(lines)]
        crcs = data[lines * 64 :]
        for page in range(len(crcs) // 4):
            found = zlib.crc32(data[page * 4096 : min(page * 4096 + 4096, lines * 64)], zlib.crc32(struct.pack("<Q", page)))
            self.check(u32(crcs, page * 4) == found, "checksum of page %d of the prefix lines is %08x" % (page, found))
        self.keys = []
        self.next = main
        shape = LineShape(key_bits, 8, main)
        self.check(shape.lines <= shape.buckets and shape.slots <= 32, "%d prefix lines" % main)
        self.read_group(shape, 0, 0)
        self.check(self.next == lines, "%d prefix lines, %d of them are used" % (lines, self.next))
        self.check(self.keys == sorted(self.keys), "the keys of the prefix lines are not ascending")

    def read_group(self, shape, first_line, base):
        for line in range(shape.lines):
            self.read_line(shape, line, self.lines[first_line + line], base, first_line + line)

    def read_line(self, shape, line, data, base, number):
        counts, kind = u64(data, 0), data[0]
        rank = int.from_bytes(data[8:13], "little")
        self.check(rank == len(self.keys), "prefix line %d: rank %d" % (number, rank))
        buckets = range(shape.first_bucket(line), shape.first_bucket(line + 1))
        first = base + (buckets[0] << shape.low_bits)
        last = base + (buckets[-1] + 1 << shape.low_bits) - 1
        if kind % 2 == 0:
            bits = format(counts, "b")[::-1] if counts else "0"
            self.check(bits.count("1") <= 51 and bits.count("0") <= shape.slots, "prefix line %d: counts" % number)
            # The first 0 is before slot 0.
            slots = [len(ones) for ones in bits.split("0")][1:]
            bucket_of = {shape.slot(bucket): bucket for bucket in buckets}
            keys = []
            for slot, count in enumerate(slots):
                low = data[13 + len(keys) : 13 + len(keys) + count]
                self.check(not count or slot in bucket_of, "prefix line %d: keys in slot %d" % (number, slot))
                self.check(all(byte < 1 << shape.low_bits for byte in low), "prefix line %d: low bytes" % number)
                keys += [base + (bucket_of[slot] << shape.low_bits) + byte for byte in low]
            self.check(not any(data[13 + len(keys) :]), "prefix line %d: bytes behind the last key" % number)
            self.keys += keys
        elif kind == 3:
            key, count = u64(data, 16), u64(data, 24)
            self.check(first + key <= last and count > 0, "prefix line %d: key %d of a run" % (number, key))
            self.check(count < 1 << 32, "prefix line %d: %d keys" % (number, count))
            self.check(not any(data[1:8] + data[13:16] + data[32:]), "prefix line %d: reserved bytes" % number)
            self.keys += [first + key] * count
        else:
            self.check(kind == 1, "prefix line %d: kind %d" % (number, kind))
            low_bits, lines, first_line = data[1], u32(data, 4), u64(data, 16)
            key_bits = (len(buckets) - 1).bit_length() + shape.low_bits
            sound = low_bits <= min(8, key_bits) and 2 <= lines <= 1 << key_bits - low_bits
            self.check(sound, "prefix line %d: divided into %d lines of %d low bits" % (number, lines, low_bits))
            divided = LineShape(key_bits, low_bits, lines)
            sound = divided.slots <= 32 and self.main <= first_line and first_line + lines <= len(self.lines)
            self.check(sound, "prefix line %d: divided into %d lines from %d on" % (number, lines, first_line))
            self.check(first_line == self.next, "prefix line %d: line %d is next" % (number, self.next))
            self.check(not any(data[2:4] + data[13:16] + data[24:]), "prefix line %d: reserved bytes" % number)
            self.next += lines
            self.read_group(divided, first_line, first)


class Table(File):
    def __init__(self, path):
        File.__init__(self, path, b"simtable", 40, (VERSION, WITH_ALL_DIFFERENCES, WITH_PREFIX_LINES))
        data, foot, check = self.data, self.footer, self.check
        blocks, blocks_len, header_crc, blocks_crc, index_crc, footer_crc = struct.unpack_from(
            "<QQIIII", data, foot
        )
        has_lines = self.version == WITH_PREFIX_LINES
        end = foot - 12 if has_lines else foot
        check(end >= 36, "no room for a header")
        self.check_crc(footer_crc, data[end : foot + 28], "footer")
        self.footer_crc = footer_crc

        self.bits, codec, self.prefix_bits, self.flips = data[12:16]
        self.block_size, self.span, reserved = u32(data, 16), u16(data, 20), u16(data, 22)
        blocks_offset, self.fingerprints = u32(data, 24), u64(data, 28)
        check(self.bits in (64, 128), "fingerprints of %d bits" % self.bits)
        check(codec < len(CODECS), "codec number %d" % codec)
        self.codec = CODECS[codec]
        sound = self.version == CODEC_VERSIONS.get(self.codec, VERSION)
        check(sound, "version %d is not that of %s" % (self.version, self.codec))
        check(self.prefix_bits <= self.bits, "%d prefix bits" % self.prefix_bits)
        check(self.flips <= self.bits // 4, "%d flips" % self.flips)
        check(self.block_size in [1 << i for i in range(8, 17)], "block size %d" % self.block_size)
        spans = (0, 0) if self.codec in ("elias-fano", "prefix-lines") else (1, 256)
        check(spans[0] <= self.span <= spans[1], "span %d" % self.span)
        check(reserved == 0, "reserved bytes 22 and 23 are not zero")
        check(256 <= blocks_offset <= 4096, "blocks offset %d" % blocks_offset)
        self.bytes = self.bits // 8
        index = blocks_offset + blocks_len
        index_end = index + blocks * self.bytes
        permutation_end = 36 + self.bits
        main = dividing = pages = 0
        lines_start = index_end
        if has_lines:
            check(permutation_end + 16 <= blocks_offset, "blocks offset %d" % blocks_offset)
            main, key_bits, dividing = u64(data, permutation_end), data[permutation_end + 8], u64(data, end)
            self.check_zero(permutation_end + 9, permutation_end + 16, "header")
            check(8 <= key_bits <= min(40, self.bits - 8), "%d key bits" % key_bits)
            check((main > 0) == (self.fingerprints > 0), "%d prefix lines" % main)
            check(main <= 1 << key_bits - 8 and (self.fingerprints or key_bits == 8), "%d key bits" % key_bits)
            alignment = 4096 if blocks_offset == 4096 else 64
            lines_start = -(-index_end // alignment) * alignment
            pages = -(-(main + dividing) // 64)
        lines_end = lines_start + (main + dividing) * 64
        check(lines_end + pages * 4 == end, "the parts do not fill the file")
        self.check_zero(index_end, lines_start, "padding before the prefix lines")
        check(blocks == -(-blocks_len // self.block_size), "%d blocks" % blocks)
        check(blocks <= self.fingerprints <= blocks * 65535, "%d fingerprints" % self.fingerprints)
        self.check_crc(header_crc, data[:blocks_offset], "header")
        self.check_crc(index_crc, data[index:index_end], "block index")
        if has_lines:
            self.check_crc(u32(data, end + 8), data[lines_end:end], "checksums of the prefix lines")

        lengths_end = permutation_end + self.bits // 2 * {"all-differences": 13, "prefix-lines": 0}.get(self.codec, 1)
        check(lengths_end <= blocks_offset, "blocks offset %d" % blocks_offset)
        self.permutation = list(data[36:permutation_end])
        check(sorted(self.permutation) == list(range(self.bits)), "the permutation does not name each bit once")
        pairs = data[permutation_end:lengths_end]
        self.lengths = [length for pair in pairs for length in (pair & 15, pair >> 4)]
        check(is_code(self.lengths), "the code lengths make no complete code")
        check(self.span > 0 or not any(self.lengths), "elias-fano has no code")
        self.check_zero(lengths_end + (16 if has_lines else 0), blocks_offset, "header")
        self.words = code_words(self.lengths)

        if has_lines:
            self.suffix_bits = self.bits - key_bits
            room = (self.block_size * 8 - 64 - self.bits) // self.suffix_bits
            self.block_fingerprints = min(room, 65535)
            self.keys = PrefixLines(self, data[lines_start:end], main, main + dividing, key_bits).keys if main else []
            check(len(self.keys) == self.fingerprints, "%d keys in the prefix lines" % len(self.keys))
        at = range(index, index_end, self.bytes)
        self.index = [int.from_bytes(data[i : i + self.bytes], "little") for i in at]
        check(ascending(self.index), "the block index is not ascending")
        self.blocks = []
        crc = 0
        for number in range(blocks):
            start = blocks_offset + number * self.block_size
            block = data[start : min(start + self.block_size, index)]
            check(len(block) >= 8 + self.bytes, "block %d is cut short" % number)
            self.check_part(number, block, "block %d" % number)
            crc = zlib.crc32(block[:4], crc)
            values = self.decode(number, block)
            check(values[-1] == self.index[number], "block %d does not end with its index entry" % number)
            self.blocks.append(values)
        check(crc == blocks_crc, "checksum of the checksums of the blocks is %08x" % crc)
        self.permuted = [value for values in self.blocks for value in values]
        check(ascending(self.permuted), "the fingerprints are not ascending")
        check(len(self.permuted) == self.fingerprints, "%d fingerprints in the blocks" % len(self.permuted))

    def decode(self, number, block):
        count, width = u16(block, 4), u16(block, 6)
        first = int.from_bytes(block[8 : 8 + self.bytes], "little")
        self.number = number
        self.check(count > 0, "block %d is empty" % number)
        # Each fingerprint after the first is coded in at least 1 bit.
        self.check(count <= 8 * len(block), "block %d: %d fingerprints" % (number, count))
        bits = Bits(block)
        if self.codec == "prefix-lines":
            values = self.decode_suffixes(bits, count, width, first)
        elif self.codec == "elias-fano":
            values = self.decode_elias_fano(bits, count, width, first)
        else:
            values = self.decode_spans(bits, count, width, first)
        self.check(ascending(values), "block %d: the fingerprints are not ascending" % number)
        self.check(values[-1] < 1 << self.bits, "block %d: a fingerprint is too large" % number)
        return values

    def decode_suffixes(self, bits, count, width, first):
        number, start = self.number, 64 + self.bits
        self.check(width == self.suffix_bits, "block %d: width %d" % (number, width))
        sound = count <= self.block_fingerprints and start + count * width <= bits.len
        self.check(sound, "block %d: %d fingerprints" % (number, count))
        rank = number * self.block_fingerprints
        keys = self.keys[rank : rank + count]
        self.check(len(keys) == count, "block %d: %d keys" % (number, len(keys)))
        values = [key << width | bits.read(start + i * width, width) for i, key in enumerate(keys)]
        self.check(values[0] == first, "block %d: the first fingerprint is another" % number)
        self.check(bits.read(start + count * width, bits.len) == 0, "block %d: padding" % number)
        return values

    def decode_elias_fano(self, bits, count, width, first):
        upper, lower = 64 + self.bits, bits.len - (count - 1) * width
        sound = width < self.bits and upper <= lower
        self.check(sound, "block %d: width %d" % (self.number, width))
        values = [first]
        for at in range(upper, lower):
            if bits.read(at, 1):
                i = len(values)
                self.check(i < count, "block %d: too many upper bits" % self.number)
                zeros = at - upper - (i - 1)
                values.append(first + (zeros << width | bits.read(bits.len - i * width, width)))
        self.check(len(values) == count, "block %d: too few upper bits" % self.number)
        return values

    def decode_spans(self, bits, count, width, first):
        spans = -(-count // self.span)
        position_bits = self.block_size.bit_length() - 1 + 3
        entries, entry_bits = 64 + self.bits, width + position_bits
        data = entries + (spans - 1) * entry_bits
        self.check(width <= self.bits and data <= bits.len, "block %d: width %d" % (self.number, width))
        starts = [data]
        starts += [bits.read(entries + i * entry_bits + width, position_bits) for i in range(spans - 1)]
        ends = starts[1:] + [bits.len]
        values = []
        for span, (start, end) in enumerate(zip(starts, ends)):
            self.check(start <= end, "block %d: positions are not ascending" % self.number)
            value = first + (bits.read(entries + (span - 1) * entry_bits, width) if span else 0)
            values.append(value)
            word_end, tail = start, end
            tails = []
            for _ in range(min(self.span, count - span * self.span) - 1):
                symbol, word_end = self.read_word(bits, word_end, end)
                tail -= self.tail_length(symbol)
                tails.append((symbol, tail))
            self.check(word_end <= tail, "block %d: words and tails overlap" % self.number)
            gap = bits.read(word_end, tail - word_end)
            self.check(gap == 0 and (word_end == tail or span == spans - 1), "block %d: padding" % self.number)
            for symbol, at in tails:
                if self.codec == "all-differences":
                    value = self.follow(bits, symbol, at, values[span * self.span :])
                    values.append(value)
                    continue
                coded, tail_bits = 1 << symbol, bits.read(at, symbol)
                if self.codec == "gap":
                    value += coded | tail_bits
                else:
                    # The predecessor has a 0 at the first differing bit.
                    self.check(value & coded == 0, "block %d: not ascending" % self.number)
                    value = value >> symbol + 1 << symbol + 1 | coded | tail_bits
                values.append(value)
        return values

    def tail_length(self, symbol):
        if self.codec != "all-differences":
            return symbol
        form, h = divmod(symbol, self.bits)
        if form == 0:
            return h
        return (form - 1) % 6 * position_length(h) + (4 if form > 6 else 0)

    def follow(self, bits, symbol, at, span):
        """Decodes the next fingerprint of a span in all-differences."""
        form, h = divmod(symbol, self.bits)
        if form == 0:
            return span[-1] + (1 << h) + bits.read(at, h)
        length, back = position_length(h), 0
        positions = [bits.read(at + i * length, length) for i in range((form - 1) % 6)]
        if form > 6:
            back = bits.read(at + len(positions) * length, 4)
            self.check(0 < back < len(span), "block %d: %d places back" % (self.number, back))
        sound = ascending(positions) and all(position < h for position in positions)
        self.check(sound, "block %d: positions %s below bit %d" % (self.number, positions, h))
        value = span[-1 - back] ^ 1 << h
        for position in positions:
            value ^= 1 << position
        return value

    def read_word(self, bits, at, end):
        word = 0
        for length in range(1, MAX_CODE_LENGTH + 1):
            if at + length > end:
                break
            word = word << 1 | bits.read(at + length - 1, 1)
            symbol = self.words.get((length, word))
            if symbol is not None:
                return symbol, at + length
        raise Damaged("%s: block %d: bits that are no code word" % (self.path, self.number))

    def invert(self, permuted):
        """Returns the original of a permuted fingerprint."""
        value = 0
        for target, source in enumerate(self.permutation):
            if permuted >> (self.bits - 1 - target) & 1:
                value |= 1 << (self.bits - 1 - source)
        return value

    def originals(self):
        return sorted(map(self.invert, self.permuted))

    def hex(self, value):
        return "%0*x" % (self.bits // 4, value)


def is_complete(tables, distance):
    """Whether every pattern of at most `distance` errors leaves some table with at most `flips` errors in its prefix."""
    prefixes = [set(table.permutation[: table.prefix_bits]) for table in tables]
    # Bits in the same prefixes are interchangeable, so they are counted in groups.
    alike = collections.Counter(tuple(bit in prefix for prefix in prefixes) for bit in range(tables[0].bits))
    groups = list(alike.items())
    patterns = 0

    def is_missed(group, left, needed):
        """Whether `left` errors in the groups from `group` on can put at least `needed[t]` errors into the prefix of each table t."""
        nonlocal patterns
        patterns += 1
        if max(needed) <= 0 or patterns > MAX_PATTERNS:
            return True
        if group == len(groups) or max(needed) > left:
            return False
        inside, bits = groups[group]
        return any(
            is_missed(group + 1, left - n, [need - n * is_in for need, is_in in zip(needed, inside)])
            for n in range(min(left, bits) + 1)
        )

    return not is_missed(0, distance, [table.flips + 1 for table in tables])


# Chunked files: README.md, ids.md, names.md, notes.md, marks.md


class Chunked(File):
    def __init__(self, path, magic, header_len, keyed, version=VERSION):
        File.__init__(self, path, magic, 32, (version,))
        data, foot = self.data, self.footer
        count, header_crc, chunks_crc, directory_crc, self.footer_crc = struct.unpack_from("<QIIII", data, foot)
        self.check_crc(self.footer_crc, data[foot : foot + 20], "footer")
        entry = 16 if keyed else 8
        directory = foot - count * entry - 8
        self.check(directory >= header_len, "%d chunks" % count)
        self.check_crc(header_crc, data[:header_len], "header")
        self.check_crc(directory_crc, data[directory:foot], "directory")
        self.check_zero(12, 16, "header")
        offsets = [u64(data, directory + i * entry) for i in range(count + 1)]
        self.keys = [u64(data, directory + i * entry + 8) for i in range(count)] if keyed else None
        sound = offsets[0] == header_len and offsets[-1] == directory and offsets == sorted(offsets)
        self.check(sound, "the offsets of the directory are not ascending")
        self.chunks = [data[start:end] for start, end in zip(offsets, offsets[1:])]
        crc = 0
        for number, chunk in enumerate(self.chunks):
            self.check(len(chunk) >= 8, "chunk %d is cut short" % number)
            self.check_part(number, chunk, "chunk %d" % number)
            crc = zlib.crc32(chunk[:4], crc)
        self.check(crc == chunks_crc, "checksum of the checksums of the chunks is %08x" % crc)


class Ids(Chunked):
    """The ids of each fingerprint, in the order of the first table."""

    def __init__(self, path, table):
        Chunked.__init__(self, path, b"simst-id", 32, False)
        fingerprints, self.ids = u64(self.data, 16), u64(self.data, 24)
        self.check(fingerprints == table.fingerprints, "ids of %d fingerprints" % fingerprints)
        self.check(len(self.chunks) == len(table.blocks), "%d chunks" % len(self.chunks))
        self.lists = []
        for number, (chunk, block) in enumerate(zip(self.chunks, table.blocks)):
            lists = self.decode(number, chunk, len(block))
            self.check(len(lists) == len(block), "chunk %d: ids of %d fingerprints" % (number, len(lists)))
            self.check(all(map(ascending, lists)), "chunk %d: the ids are not ascending" % number)
            self.lists += lists
        found = sum(map(len, self.lists))
        self.check(found == self.ids, "%d ids, the header says %d" % (found, self.ids))

    def decode(self, number, chunk, fingerprints):
        self.check(len(chunk) >= 20, "chunk %d is cut short" % number)
        count, base, width, grouped = u32(chunk, 4), u64(chunk, 8), chunk[16], chunk[17]
        self.check(width <= 64 and grouped <= 1 and not any(chunk[18:20]), "chunk %d: header" % number)
        self.check(grouped or count == fingerprints, "chunk %d: %d ids" % (number, count))
        used = count * (width + grouped)
        body = Bits(chunk[20:])
        self.check(body.len == -(-used // 8) * 8, "chunk %d: the ids do not fill it" % number)
        self.check(body.read(used, body.len - used) == 0, "chunk %d: padding" % number)
        lists = []
        for i in range(count):
            value = base + body.read(grouped * count + i * width, width)
            self.check(value < 1 << 64, "chunk %d: an id is too large" % number)
            if not grouped or body.read(i, 1):
                lists.append([])
            self.check(lists, "chunk %d: an id before the first fingerprint" % number)
            lists[-1].append(value)
        return lists


class ById(Chunked):
    """Names or notes of documents by id: at most `longest` bytes each, in chunks of at most `longest_chunk` bytes."""

    def __init__(self, path, magic, version, shares, longest, longest_chunk):
        Chunked.__init__(self, path, magic, 16, True, version)
        self.values = {}
        previous = -1
        for number, chunk in enumerate(self.chunks):
            self.check(len(chunk) <= longest_chunk, "chunk %d is too long" % number)
            at, value, identifier = 8, b"", self.keys[number]
            for i in range(u32(chunk, 4)):
                delta, at = self.varint(chunk, at)
                shared, at = self.varint(chunk, at) if shares else (0, at)
                length, at = self.varint(chunk, at)
                self.check((i == 0) == (delta == 0), "chunk %d: the ids are not ascending" % number)
                sound = shared <= len(value) and at + length <= len(chunk) and shared + length <= longest
                self.check(sound, "chunk %d: an entry is longer than its chunk" % number)
                identifier += delta
                self.check(previous < identifier < 1 << 64, "chunk %d: the ids are not ascending" % number)
                previous = identifier
                value = value[:shared] + chunk[at : at + length]
                at += length
                self.values[identifier] = value
            self.check(at == len(chunk) and u32(chunk, 4) > 0, "chunk %d: number of entries" % number)

    def varint(self, chunk, at):
        value = 0
        for shift in range(0, 64, 7):
            self.check(at < len(chunk), "a number runs out of its chunk")
            value |= (chunk[at] & 127) << shift
            at += 1
            if chunk[at - 1] < 128:
                self.check(value < 1 << 64, "a number of more than 64 bits")
                return value, at
        self.check(False, "a number of more than 64 bits")


class Names(ById):
    """Names of documents by id."""

    def __init__(self, path):
        ById.__init__(self, path, b"simnames", VERSION, True, 1 << 16, 1 << 17)
        self.names = {}
        for identifier, name in self.values.items():
            try:
                self.names[identifier] = name.decode("utf-8")
            except UnicodeDecodeError:
                self.check(False, "the name of %d is not UTF-8" % identifier)


class Notes(ById):
    """Notes of documents by id."""

    def __init__(self, path):
        ById.__init__(self, path, b"simnotes", WITH_NOTES, False, 1 << 24, (1 << 24) + (1 << 16))


# Stores: README.md, manifest.md


class Manifest(File):
    def __init__(self, path):
        versions = (VERSION, WITH_NOTES, WITH_ALL_DIFFERENCES, WITH_PREFIX_LINES)
        File.__init__(self, path, b"simstore", 12, versions)
        data = self.data
        self.check_crc(u32(data, self.footer), data[: self.footer], "manifest")
        self.at = 12
        self.bits, self.distance, codec, flags = self.take("<BBBB")
        self.check(self.bits in (64, 128), "fingerprints of %d bits" % self.bits)
        self.check(self.distance <= self.bits // 4, "distance %d" % self.distance)
        known = {WITH_ALL_DIFFERENCES: [3], WITH_PREFIX_LINES: [4]}.get(self.version, [0, 1, 2])
        self.check(codec in known, "codec number %d" % codec)
        self.check(flags < 4, "flags %d" % flags)
        self.codec, self.has_ids, self.has_highest = CODECS[codec], flags & 1 > 0, flags & 2 > 0
        block_size, span, reserved = self.take("<IHH")
        self.check(block_size in [0] + [1 << i for i in range(8, 17)], "block size %d" % block_size)
        self.check(span <= 256, "span %d" % span)
        self.check(reserved == 0, "reserved bytes 22 and 23 are not zero")
        self.next_number, self.first_log, self.sequence, self.highest_id = self.take("<QQQQ")
        self.check(self.has_highest or self.highest_id == 0, "highest id %d, and none was stored" % self.highest_id)
        self.check(1 <= self.next_number <= 1 << 48, "next number %d" % self.next_number)
        self.check(self.first_log < self.next_number, "first log %d" % self.first_log)
        segments, reserved = self.take("<II")
        self.check(reserved == 0, "reserved bytes 60 to 63 are not zero")
        self.profile, self.plan = self.text(), self.text()
        self.segments = [self.segment() for _ in range(segments)]
        self.check(self.at == self.footer, "bytes after the last segment")
        numbers = [segment["number"] for segment in self.segments]
        self.check(len(set(numbers)) == len(numbers), "two segments have one number")
        notes = WITH_NOTES if any(segment["notes"] for segment in self.segments) else VERSION
        version = CODEC_VERSIONS.get(self.codec, notes)
        self.check(self.version == version, "format version %d, and its contents have %d" % (self.version, version))

    def take(self, layout):
        end = self.at + struct.calcsize(layout)
        self.check(end <= self.footer, "cut short")
        fields = struct.unpack_from(layout, self.data, self.at)
        self.at = end
        return fields

    def text(self):
        (length,) = self.take("<I")
        self.check(self.at + length <= self.footer, "a text is longer than the manifest")
        self.at += length
        try:
            return self.data[self.at - length : self.at].decode("utf-8")
        except UnicodeDecodeError:
            self.check(False, "a text is not UTF-8")

    def segment(self):
        number, fingerprints, ids, names, tombstones, marks, tables, flags = self.take("<QQQQQQII")
        self.check(number < self.next_number, "segment number %d" % number)
        self.check(1 <= tables <= 64, "%d tables" % tables)
        has_notes = self.version >= WITH_NOTES
        (notes,) = self.take("<Q") if has_notes else (0,)
        self.check(flags <= (31 if has_notes else 15), "flags %d" % flags)
        self.check((flags & 1 > 0) == self.has_ids, "flags %d, the store's say otherwise of ids" % flags)
        self.check(ids >= fingerprints if flags & 1 else ids == 0, "%d ids" % ids)
        self.check((names > 0) == (flags & 2 > 0), "%d names" % names)
        files = ["%06d-%02d.table" % (number, table) for table in range(tables)]
        self.check((tombstones > 0) == (flags & 4 > 0), "%d tombstones" % tombstones)
        self.check((marks > 0) == (flags & 8 > 0), "%d marks" % marks)
        self.check((notes > 0) == (flags & 16 > 0), "%d notes" % notes)
        kinds = enumerate(["ids", "names", "tombstones", "marks", "notes"])
        kinds = [kind for bit, kind in kinds if flags >> bit & 1]
        files += ["%06d.%s" % (number, kind) for kind in kinds]
        footers = dict(zip(files, self.take("<%dI" % len(files))))
        return {
            "number": number,
            "fingerprints": fingerprints,
            "ids": ids,
            "names": names,
            "tombstones": tombstones,
            "marks": marks,
            "notes": notes,
            "files": files,
            "footers": footers,
            "plan": self.text(),
        }


class Marks(Chunked):
    """Marks of a writer, by key."""

    def __init__(self, path):
        Chunked.__init__(self, path, b"simmarks", 16, False)
        marks = []
        for number, chunk in enumerate(self.chunks):
            self.check(len(chunk) <= 1 << 14, "chunk %d is too long" % number)
            at, count = 8, u32(chunk, 4)
            self.check(count > 0, "chunk %d has no marks" % number)
            for _ in range(count):
                self.check(at + 4 <= len(chunk), "chunk %d is cut short" % number)
                key, value = u16(chunk, at), u16(chunk, at + 2)
                at += 4 + key + value
                sound = key <= 1 << 12 and value <= 1 << 12 and at <= len(chunk)
                self.check(sound, "chunk %d: a mark is too long" % number)
                marks.append((chunk[at - key - value : at - value], chunk[at - value : at]))
            self.check(at == len(chunk), "chunk %d: bytes after the last mark" % number)
        self.check(ascending([key for key, _ in marks]), "the keys are not ascending")
        try:
            self.marks = {key.decode("utf-8"): value for key, value in marks}
        except UnicodeDecodeError:
            self.check(False, "a key is not UTF-8")


class Tombstones(File):
    """Pairs of fingerprint and id that are deleted from older segments."""

    def __init__(self, path, bits):
        File.__init__(self, path, b"simstomb", 12)
        data = self.data
        self.footer_crc = u32(data, self.footer)
        self.check_crc(self.footer_crc, data[: self.footer], "tombstones")
        self.check(self.footer >= 24, "cut short")
        self.check(data[12] == bits, "fingerprints of %d bits" % data[12])
        self.check_zero(13, 16, "header")
        size = bits // 8 + 8
        self.check(24 + u64(data, 16) * size == self.footer, "%d tombstones do not fit" % u64(data, 16))
        at = range(24, self.footer, size)
        self.pairs = [(int.from_bytes(data[i : i + size - 8], "little"), u64(data, i + size - 8)) for i in at]
        self.check(ascending(self.pairs), "tombstones do not ascend")


class Store:
    """A whole store. `entries` are (fingerprint, id or None, name or None), ascending."""

    def __init__(self, path):
        self.path = path
        self.manifest = Manifest(os.path.join(path, "MANIFEST"))
        entries = set()
        names = {}
        self.marks, self.notes, self.torn_end = {}, {}, None
        for segment in self.manifest.segments:
            added = self.read_segment(segment, entries, names)
            entries.update(added)
            if self.manifest.has_ids and added:
                highest = max(identifier for _, identifier in added)
                sound = self.manifest.has_highest and highest <= self.manifest.highest_id
                self.manifest.check(sound, "an id %d, above the highest id %d" % (highest, self.manifest.highest_id))
        self.read_logs(entries, names)
        if not self.manifest.has_ids:
            entries = {(value, None) for value, _ in entries}
        self.entries = sorted(entries, key=lambda entry: (entry[0], -1 if entry[1] is None else entry[1]))
        self.entries = [(value, identifier, names.get(identifier)) for value, identifier in self.entries]

    def read_logs(self, entries, names):
        """Applies the operations of the logs in order."""
        first, sequence = self.manifest.first_log, self.manifest.sequence
        logs = sorted(int(name[:-4]) for name in os.listdir(self.path) if name.endswith(".log")) if first else []
        logs = [number for number in logs if number >= first]
        if first and logs[:1] != [first]:
            raise Damaged("%s: log %d is missing" % (self.path, first))
        before = None
        for number in logs:
            log = Log(os.path.join(self.path, "%06d.log" % number))
            if before:
                log.check(log.previous == before.number, "follows log %d, not %d" % (log.previous, before.number))
                said = "ends at %d, the next log says %d" % (before.sound, log.previous_length)
                before.check(log.previous_length == before.sound, said)
            before = log
            log.check(log.first_sequence is not None, "the header is damaged")
            log.check(log.bits == self.manifest.bits, "fingerprints of %d bits" % log.bits)
            log.check(log.first_sequence == sequence, "does not follow what comes before")
            for _,  operations in log.records:
                for kind, *fields in operations:
                    if kind == "mark":
                        self.marks[fields[0]] = fields[1]
                    elif kind == "note":
                        self.notes[fields[0]] = fields[1]
                    elif kind == "delete":
                        entries.discard(tuple(fields))
                        self.forget([fields[1]], names)
                    else:
                        entries.add(tuple(fields[:2]))
                        if fields[2] is not None:
                            names[fields[1]] = fields[2]
            sequence = log.next_sequence
        if before and before.torn and not before.closed:
            self.torn_end = "%s: a torn end of %d bytes, or damage" % (before.path, before.torn)

    def forget(self, identifiers, names):
        """Removes the names and notes of ids that lost a pair."""
        for identifier in identifiers:
            names.pop(identifier, None)
            self.notes.pop(identifier, None)

    def read_segment(self, segment, entries, all_names):
        """Returns the pairs of a segment, with id 0 in a store without ids. Removes deleted pairs from `entries`, and adds names."""
        tables, ids, names, notes, deleted = [], None, {}, {}, []
        for name in segment["files"]:
            path = os.path.join(self.path, name)
            if name.endswith(".table"):
                file = Table(path)
                tables.append(file)
                file.check(file.bits == self.manifest.bits, "fingerprints of %d bits" % file.bits)
                sound = file.fingerprints == segment["fingerprints"]
                file.check(sound, "%d fingerprints, the manifest says otherwise" % file.fingerprints)
                first = tables[0]
                first.check(first.permutation == list(range(first.bits)), "the first table is permuted")
                file.check(file.originals() == first.permuted, "the first table holds other fingerprints")
            elif name.endswith(".ids"):
                file = ids = Ids(path, tables[0])
                file.check(ids.ids == segment["ids"], "%d ids, the manifest says otherwise" % ids.ids)
            elif name.endswith(".tombstones"):
                file = Tombstones(path, self.manifest.bits)
                deleted = file.pairs
                file.check(len(deleted) == segment["tombstones"], "%d tombstones, the manifest says otherwise" % len(deleted))
            elif name.endswith(".marks"):
                file = Marks(path)
                self.marks.update(file.marks)
                sound = len(file.marks) == segment["marks"]
                file.check(sound, "%d marks, the manifest says otherwise" % len(file.marks))
            elif name.endswith(".notes"):
                file = Notes(path)
                notes = file.values
                sound = len(file.values) == segment["notes"]
                file.check(sound, "%d notes, the manifest says otherwise" % len(file.values))
            else:
                file = Names(path)
                names = file.names
                sound = len(names) == segment["names"]
                file.check(sound, "%d names, the manifest says otherwise" % len(names))
            sound = file.footer_crc == segment["footers"][name]
            file.check(sound, "is not the file that the manifest names")
        tables[0].check(is_complete(tables, self.manifest.distance), "the tables of the segment miss neighbours")
        entries.difference_update(deleted)
        self.forget([identifier for _, identifier in deleted], all_names)
        all_names.update(names)
        self.notes.update(notes)
        lists = ids.lists if ids else [[0]] * len(tables[0].permuted)
        return [(value, each) for value, of_value in zip(tables[0].permuted, lists) for each in of_value]


# Logs: log.md

RECORD_MAGIC = b"\xf7rec"


class Log(File):
    """The operations of a log. `records` are (sequence, operations). `first_sequence` is None if the header is torn. `closed` is true
    if the log has an end record."""

    def __init__(self, path):
        self.path = path
        self.data = data = read_file(path)
        digits = os.path.basename(path).split(".")[0]
        self.check(digits.isdigit(), "the name of a log is its number and .log")
        self.number = int(digits)
        self.records, self.sound, self.bits, self.first_sequence = [], 0, None, None
        self.previous, self.previous_length, self.closed = 0, 0, False
        if self.read_header():
            self.sound = 56
            self.next_sequence = sequence = self.first_sequence
            while self.sound < len(data) and not self.closed:
                at = self.sound
                record = self.record_at(at)
                if record is None or record[0] != sequence:
                    self.refuse_if_synced(at, sequence + 1)
                    break
                operations = self.read_record(at, record)
                self.closed = record[3] == 0
                if not self.closed:
                    self.records.append((sequence, operations))
                self.sound += record[2]
                self.next_sequence = sequence = sequence + 1
        self.torn = len(data) - self.sound

    def read_header(self):
        """Whether the header is complete."""
        data = self.data
        if data[:8] == b"simstlog" and len(data) >= 12:
            self.version = u32(data, 8)
            self.check(self.version in (VERSION, WITH_NOTES), "format version %d" % self.version)
        if len(data) < 56:
            return False
        torn = data[:8] == b"simstlog" and zlib.crc32(data[:52]) != u32(data, 52)
        if torn or not any(data[:56]):
            self.refuse_if_synced(0, 0)
            return False
        self.check(data[:8] == b"simstlog", "starts with %r, not with b'simstlog'" % data[:8])
        self.bits, number, first = data[12], u64(data, 16), u64(data, 24)
        self.check(self.bits in (64, 128), "fingerprints of %d bits" % self.bits)
        self.check_zero(13, 16, "header")
        self.check_zero(48, 52, "header")
        self.check(number == self.number, "is log %d, not the one of its name" % number)
        self.check(first <= 1 << 63, "first sequence number %d" % first)
        self.previous, self.previous_length = u64(data, 32), u64(data, 40)
        self.check(self.previous < number, "is log %d, and names %d before it" % (number, self.previous))
        length = self.previous_length
        fits = length >= 56 and length % 8 == 0 if self.previous else length == 0
        self.check(fits, "a log of %d bytes before it" % length)
        self.first_sequence = first
        return True

    def record_at(self, at):
        """Returns (sequence, durable, length, payload length) of the record at a position, or None if the record is not sound."""
        data = self.data
        if len(data) - at < 32 or data[at : at + 4] != RECORD_MAGIC:
            return None
        payload = u32(data, at + 8)
        length = 32 + -(-payload // 8) * 8
        if length > len(data) - at:
            return None
        place = struct.pack("<QQ", self.number, at)
        if zlib.crc32(data[at + 8 : at + length], zlib.crc32(place)) != u32(data, at + 4):
            return None
        return u64(data, at + 16), u64(data, at + 24), length, payload

    def refuse_if_synced(self, at, least):
        """Rejects an unsound record if a later record says that it was synced, which no crash explains."""
        data = self.data
        problem = "what is at offset %d was synced, and is not sound" % at
        left = 4 * (len(data) - at)
        for later in range(at + 8, len(data) - 31, 8):
            if data[later : later + 4] != RECORD_MAGIC:
                continue
            length = 32 + -(-u32(data, later + 8) // 8) * 8
            sequence, durable = u64(data, later + 16), u64(data, later + 24)
            fits = length <= len(data) - later and durable <= later
            if fits and sequence >= least and durable > at:
                self.check(length <= left and self.record_at(later) is None, problem)
                left -= length

    def read_record(self, at, record):
        _, durable, length, payload = record
        end = at + 32 + payload
        self.check_zero(at + 12, at + 16, "record")
        self.check_zero(end, at + length, "padding of a record")
        self.check(durable <= at, "offset %d: durable is %d" % (at, durable))
        self.check(payload > 0 or durable == at, "offset %d: an end record, and durable is %d" % (at, durable))
        self.at, self.end, self.start = at + 32, end, at
        operations = []
        while self.at < end:
            operations.append(self.operation())
        return operations

    def take(self, length):
        self.check(self.at + length <= self.end, "the record at offset %d: an operation is cut short" % self.start)
        self.at += length
        return self.data[self.at - length : self.at]

    def bytes(self, limit):
        length = u32(self.take(4), 0)
        self.check(length <= limit, "the record at offset %d: a text of %d bytes" % (self.start, length))
        return self.take(length)

    def text(self, limit):
        try:
            return self.bytes(limit).decode("utf-8")
        except UnicodeDecodeError:
            self.check(False, "the record at offset %d: a text is not UTF-8" % self.start)

    def operation(self):
        (kind,) = self.take(1)
        last = 5 if self.version >= WITH_NOTES else 4
        self.check(1 <= kind <= last, "the record at offset %d: an operation of kind %d" % (self.start, kind))
        if kind == 4:
            return "mark", self.text(1 << 12), self.bytes(1 << 12)
        if kind == 5:
            return "note", u64(self.take(8), 0), self.bytes(1 << 24)
        fingerprint = int.from_bytes(self.take(self.bits // 8), "little")
        identifier = u64(self.take(8), 0)
        if kind == 3:
            return "delete", fingerprint, identifier
        return "insert", fingerprint, identifier, self.text(1 << 16) if kind == 2 else None


# Shards: shards.md


class Shards:
    """A sharded set. `entries` are the (fingerprint, id) pairs of all shards, ascending."""

    def __init__(self, path):
        self.path = os.path.join(path, "shards.json")
        data = read_file(self.path)
        tail = re.match(rb', "checksum": "([0-9a-f]{8})"\}\n\Z', data[-26:])
        self.check(tail, "does not end with a checksum")
        self.check(b"%08x" % zlib.crc32(data[:-26]) == tail.group(1), "checksum is another")
        try:
            self.members = json.loads(data.decode("utf-8"))
        except ValueError as error:
            self.check(False, "is not JSON: %s" % error)
        self.check(isinstance(self.members, dict), "is no JSON object")
        self.check(self.members.get("format") == "simstore shards", "is not a list of shards")
        self.check(self.members.get("version") == 1, "version %s" % self.members.get("version"))
        names = ["bits", "checksum", "distance", "format", "missing", "profile", "run", "shards", "version"]
        self.check(sorted(self.members) == names, "has other members")
        self.bits, self.distance, self.run = (self.members[name] for name in ("bits", "distance", "run"))
        self.profile, self.missing, shards = (self.members[name] for name in ("profile", "missing", "shards"))
        self.number("bits", self.bits, 64, 128)
        self.check(self.bits in (64, 128), "bits %d" % self.bits)
        self.number("distance", self.distance, 0, self.bits // 4)
        self.text("run", self.run, "[0-9a-f]{16}")
        self.number("missing", self.missing, 0, 2**64 - 1)
        if self.profile is not None:
            self.text("profile", self.profile, "(?s).*")
        self.check(isinstance(shards, list), "shards are no array")
        entries, before = set(), -1
        for shard in shards:
            is_shard = isinstance(shard, dict) and sorted(shard) == ["checksum", "fingerprints", "folder", "pairs"]
            self.check(is_shard, "a shard has other members")
            before = self.read_shard(path, shard, before, entries)
        self.entries = sorted(entries)

    def check(self, sound, problem):
        if not sound:
            raise Damaged("%s: %s" % (self.path, problem))

    def number(self, name, value, least, most):
        self.check(type(value) is int and least <= value <= most, "%s %r" % (name, value))

    def text(self, name, value, pattern):
        self.check(isinstance(value, str) and re.fullmatch(pattern, value), "%s %r" % (name, value))

    def read_shard(self, path, shard, before, entries):
        """Adds the pairs of a shard to `entries`. Returns the shard's number."""
        folder = shard["folder"]
        self.text("folder", folder, "shard-[0-9]{5,}-" + self.run)
        number = int(folder.split("-")[1])
        self.check(folder == "shard-%05d-%s" % (number, self.run) and number > before, "folder %r" % folder)
        self.number("fingerprints", shard["fingerprints"], 1, 2**64 - 1)
        self.number("pairs", shard["pairs"], shard["fingerprints"], 2**64 - 1)
        self.text("checksum", shard["checksum"], "[0-9a-f]{8}")
        store = Store(os.path.join(path, folder))
        manifest = store.manifest
        found = "%08x" % u32(manifest.data, manifest.footer)
        manifest.check(found == shard["checksum"], "checksum is %s, the shards say %s" % (found, shard["checksum"]))
        manifest.check((manifest.bits, manifest.distance) == (self.bits, self.distance), "bits or distance are others")
        pairs = {entry[:2] for entry in store.entries}
        counts = len({value for value, _ in pairs}), len(pairs)
        manifest.check(counts == (shard["fingerprints"], shard["pairs"]), "holds %d fingerprints, %d pairs" % counts)
        entries.update(pairs)
        return number


def escape(name):
    """Escapes a name for a column of text: control characters as `\\t`, `\\n`, `\\r` or `\\u{hex}`."""
    known = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
    control = [c for c in set(name) if c < " " or "\x7f" <= c <= "\x9f"]
    return name.translate({ord(c): known.get(c, "\\u{%x}" % ord(c)) for c in control})


def print_store(path, out):
    store = Store(path)
    for value, identifier, name in store.entries:
        columns = ["%0*x" % (store.manifest.bits // 4, value)]
        columns += [] if identifier is None else [str(identifier)]
        columns += [] if name is None else [escape(name)]
        out.write("\t".join(columns) + "\n")
    if store.torn_end:
        sys.stderr.write(store.torn_end + "\n")


def print_marks(path, out):
    for key, value in sorted(Store(path).marks.items(), key=lambda mark: mark[0].encode("utf-8")):
        out.write("%s\t%s\n" % (escape(key), value.hex()))


def print_notes(path, out):
    for identifier, note in sorted(Store(path).notes.items()):
        out.write("%d\t%s\n" % (identifier, note.hex()))


# Signatures: signature.md


def splitmix(state):
    """Yields the numbers of SplitMix64."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def sketch(features):
    """Returns the sum of the hashed features, and their 8 bands of 64 bits."""
    words = [next(splitmix(feature)) for feature in features]
    numbers = splitmix(0)
    rounds = [(next(numbers) | 1, next(numbers)) for _ in range(4)]
    minima = {}
    for a, b in rounds:
        of_round = {}
        for w in words:
            h = (w * a + b) % 2**64
            position, value = h >> 55, (h >> 23) % 2**32
            of_round[position] = min(value, of_round.get(position, value))
        minima = {**of_round, **minima}
    sketches = [0] * 8
    for i in range(512):
        number = next(numbers)
        c, d = number % 2**32 | 1, number >> 32
        minimum = minima[i] if i in minima else min((w * c + d) % 2**32 for w in words)
        x = minimum ^ i * 0x9E3779B9 % 2**32
        x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
        x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
        sketches[i // 64] |= (x >> 31) << i % 64
    return sum(words) % 2**64, sketches


def mix(state):
    """Returns the number of SplitMix64 for a state."""
    return next(splitmix((state - 0x9E3779B97F4A7C15) % 2**64))


def word_hash(word, xxh3):
    """Returns the hash of a word. For a word of more than 16 bytes, this is `xxh3`, since the standard library has no XXH3."""
    word = word.encode()
    if len(word) > 16:
        return xxh3
    low, high = (int.from_bytes(part, "little") for part in (word[:8], word[8:]))
    return mix(low ^ mix((high + len(word) * 0x9E3779B97F4A7C15) % 2**64))


def shingle(words):
    """Returns the hash of a run of words from the hashes of the words."""
    if len(words) == 1:
        return words[0]
    total = 0
    for word in words:
        total = (total * 0x9E3779B97F4A7C15 + word) % 2**64
    return mix(total)


def print_shingles(path, out):
    """Computes the hash of each run. A line has the words of a run and, after a tab, their hashes in hexadecimal."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            run, given = line.rstrip("\n").split("\t")[:2]
            hashes = [word_hash(word, int(number, 16)) for word, number in zip(run.split(" "), given.split(" "))]
            out.write("%s\t%s\t%016x\n" % (run, " ".join("%016x" % number for number in hashes), shingle(hashes)))


def print_sketches(path, out):
    """Computes the sum and the bands of ranges of features. A line has the first feature, a tab, and the number of features."""
    with open(path, encoding="ascii") as lines:
        for line in lines:
            first, count = map(int, line.split("\t")[:2])
            total, sketches = sketch([(first + i) % 2**64 for i in range(count)])
            out.write("\t".join([str(first), str(count), *("%016x" % number for number in [total, *sketches])]) + "\n")


# Similar documents: similar.md


def decompress(frame, dictionary):
    """Decompresses a Zstandard frame. Returns None if this Python has no zstd module (before 3.14)."""
    try:
        from compression import zstd
    except ImportError:
        return None
    try:
        return zstd.decompress(frame, zstd.ZstdDict(dictionary) if dictionary else None)
    except zstd.ZstdError as error:
        raise Damaged("a text: %s" % error) from error


def document(path, store, identifier):
    """Returns the number of features of a document, their sum, and its bands. Checks its text."""
    note = store.notes[identifier]
    where = "%s: note of %d: " % (path, identifier)
    has_texts = store.marks["similar"].endswith(b" texts")
    if len(note) < (80 if has_texts else 76):
        raise Damaged(where + "%d bytes" % len(note))
    if u32(note, 0) == 0:
        raise Damaged(where + "no features")
    if has_texts:
        parts = (store.marks.get("similar texts %d" % part) for part in range(8))
        text = decompress(note[80:], b"".join(itertools.takewhile(bool, parts)))
        if text is not None and len(text) != u32(note, 76):
            raise Damaged(where + "a text of %d bytes, not %d" % (len(text), u32(note, 76)))
        try:
            text is None or text.decode()
        except UnicodeDecodeError as error:
            raise Damaged(where + "a text that is not UTF-8") from error
    return u32(note, 0), u64(note, 4), [u64(note, at) for at in range(12, 76, 8)]


def estimate(a, b):
    """Returns the estimated similarity of two documents, and its standard error."""
    if a == b:
        return 1.0, 0.0
    differ = sum(bin(x ^ y).count("1") for x, y in zip(a[2], b[2]))
    p = (1 + differ) / (2 + 512)
    similarity = max(0.0, 1 - 2 * differ / 512)
    both = int(similarity * (a[0] + b[0]) / (1 + similarity) + 0.5)
    both = min(both, min(a[0], b[0]) - (a[0] == b[0]))
    return both / (a[0] + b[0] - both), 2 * (p * (1 - p) / 512) ** 0.5


def print_similar(path, identifiers, out):
    store = Store(path)
    if "similar" not in store.marks:
        raise Damaged("%s: no mark `similar`" % path)
    missing = [i for i in identifiers if not store.notes.get(i)]
    if missing:
        raise Damaged("%s: no document %d" % (path, missing[0]))
    a, b = (document(path, store, i) for i in identifiers)
    out.write("%.6f\t%.6f\n" % estimate(a, b))


def print_table(path, out):
    table = Table(path)
    for field in ["bits", "codec", "prefix_bits", "flips", "block_size", "span", "fingerprints", "permutation"]:
        out.write("%s: %s\n" % (field.replace("_", " "), getattr(table, field)))
    lengths = {symbol: length for symbol, length in enumerate(table.lengths) if length}
    out.write("code lengths: %s\nblocks: %s\n" % (lengths, [len(block) for block in table.blocks]))
    for value in table.permuted:
        out.write(table.hex(value) + "\n")


def print_log(path, out):
    log = Log(path)
    fields = ["number", "bits", "first_sequence", "previous", "previous_length", "sound", "closed", "torn"]
    for field in fields:
        out.write("%s: %s\n" % (field.replace("_", " "), getattr(log, field)))
    for sequence, operations in log.records:
        for operation in operations:
            columns = [str(sequence), operation[0]]
            if operation[0] == "mark":
                # The format does not define the meaning of marks, so they are printed in hexadecimal.
                columns += [escape(operation[1]), operation[2].hex()]
            elif operation[0] == "note":
                columns += [str(operation[1]), operation[2].hex()]
            else:
                columns += ["%0*x" % (log.bits // 4, operation[1]), str(operation[2])]
                columns += [escape(name) for name in operation[3:] if name is not None]
            out.write("\t".join(columns) + "\n")


def print_shards(path, out):
    shards = Shards(path)
    for value, identifier in shards.entries:
        out.write("%0*x\t%d\n" % (shards.bits // 4, value, identifier))


def main(arguments):
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        command, path = print_store, arguments[0]
    elif len(arguments) == 2 and arguments[0] == "--marks":
        command, path = print_marks, arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--notes":
        command, path = print_notes, arguments[1]
    elif len(arguments) == 4 and arguments[0] == "--similar":
        identifiers = [int(number) for number in arguments[2:]]
        command, path = lambda path, out: print_similar(path, identifiers, out), arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--sketches":
        command, path = print_sketches, arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--shingles":
        command, path = print_shingles, arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--table":
        command, path = print_table, arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--log":
        command, path = print_log, arguments[1]
    elif len(arguments) == 2 and arguments[0] == "--shards":
        command, path = print_shards, arguments[1]
    else:
        sys.stderr.write(__doc__)
        return 2
    out = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False)
    try:
        command(path, out)
        out.flush()
    except Damaged as error:
        sys.stderr.write("%s\n" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
