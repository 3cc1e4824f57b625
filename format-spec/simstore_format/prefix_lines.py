"""Prefix lines of a table: prefix-lines.md.

The lines hold the first bits of each fingerprint, its *key*, in lines of 64 bytes. Arithmetic leads from a key to its line.
"""

from .frame import number, part_checksum, u32, u64

LINE, PAGE, MAX_KEYS, MAX_SLOTS = 64, 4096, 51, 32


class LineShape:
    """Where keys of `key_bits` bits are in a group of `lines` lines: section "Where a prefix is"."""

    def __init__(self, key_bits, low_bits, lines):
        self.key_bits, self.low_bits, self.lines = key_bits, low_bits, lines
        self.buckets = 1 << key_bits - low_bits
        self.slots = -(-self.buckets // lines)

    def first_bucket(self, line):
        return -(-line * self.buckets // self.lines)

    def slot(self, bucket):
        return bucket * self.lines % self.buckets * self.slots // self.buckets


class PrefixLines:
    """The keys of all lines, in order. `data` holds the lines and the page checksums; `fingerprints` is the table's number of them."""

    def __init__(self, check, data, main, dividing, key_bits, fingerprints):
        self.check, self.main, self.fingerprints = check, main, fingerprints
        end = (main + dividing) * LINE
        self.lines = [data[at : at + LINE] for at in range(0, end, LINE)]
        for page, at in enumerate(range(0, end, PAGE)):
            found = part_checksum(page, data[at : min(at + PAGE, end)])
            self.check(u32(data, end + page * 4) == found, f"checksum of page {page} of the prefix lines is {found:08x}")
        self.keys = []
        # The number of the first line that divides the next divided line.
        self.next = main
        shape = LineShape(key_bits, 8, main)
        self.check(shape.lines <= shape.buckets and shape.slots <= MAX_SLOTS, f"{main} prefix lines for keys of {key_bits} bits")
        self.read_group(shape, 0, 0, (1 << key_bits) - 1)
        self.check(self.next == len(self.lines), f"{len(self.lines)} prefix lines, {self.next} of them are used")
        self.check(len(self.keys) == fingerprints, f"{len(self.keys)} keys in the prefix lines")
        self.check(self.keys == sorted(self.keys), "the keys of the prefix lines descend")

    def read_group(self, shape, first_line, base, last):
        """Reads main lines, or the lines that divide a line. `base` is added to each key of the group, and `last` is the greatest key."""
        for line in range(shape.lines):
            self.read_line(shape, line, first_line + line, base, last)

    def read_line(self, shape, line, name, base, last):
        """Reads line `line` of a group. `name` is its number in the table."""
        data = self.lines[name]
        rank = number(data[8:13])
        self.check(rank == len(self.keys), f"prefix line {name}: rank {rank}, and {len(self.keys)} keys come before")
        buckets = range(shape.first_bucket(line), shape.first_bucket(line + 1))
        if data[0] % 2 == 0:
            self.read_keys(shape, buckets, data, base, last, name)
            return
        first = base + (buckets[0] << shape.low_bits)
        last = min(last, base + (buckets[-1] + 1 << shape.low_bits) - 1)
        self.check(not any(data[13:16]), f"prefix line {name}: reserved bytes")
        if data[0] == 3:
            self.read_run(data, first, last, name)
        else:
            self.check(data[0] == 1, f"prefix line {name}: kind {data[0]}")
            self.read_divided(shape, len(buckets), data, first, last, name)

    def read_keys(self, shape, buckets, data, base, last, name):
        """Section "Lines of keys"."""
        counts = u64(data, 0)
        bits = f"{counts:b}"[::-1] if counts else "0"
        is_sound = bits.count("1") <= MAX_KEYS and bits.count("0") <= shape.slots
        self.check(is_sound, f"prefix line {name}: counts {bits}")
        # The first 0 comes before slot 0.
        counts_of_slots = [len(ones) for ones in bits.split("0")][1:]
        bucket_of = {shape.slot(bucket): bucket for bucket in buckets}
        at = 13
        for slot, count in enumerate(counts_of_slots):
            self.check(not count or slot in bucket_of, f"prefix line {name}: keys in slot {slot}, which has no bucket")
            for low in data[at : at + count]:
                self.check(low < 1 << shape.low_bits, f"prefix line {name}: low byte {low}")
                key = base + (bucket_of[slot] << shape.low_bits) + low
                self.check(key <= last, f"prefix line {name}: key {key} lies outside the divided line")
                self.keys.append(key)
            at += count
        self.check(not any(data[at:]), f"prefix line {name}: bytes behind the last key")

    def read_run(self, data, first, last, name):
        """Section "Runs"."""
        key, count = u64(data, 16), u64(data, 24)
        self.check(first + key <= last, f"prefix line {name}: key {key} of a run lies outside the line")
        self.check(1 <= count <= self.fingerprints - len(self.keys), f"prefix line {name}: a run of {count} keys")
        self.check(not any(data[1:8] + data[32:]), f"prefix line {name}: reserved bytes")
        self.keys += [first + key] * count

    def read_divided(self, shape, buckets, data, first, last, name):
        """Section "Divided lines". `buckets` is the number of buckets of the line."""
        low_bits, lines, first_line = data[1], u32(data, 4), u64(data, 16)
        key_bits = (buckets - 1).bit_length() + shape.low_bits
        is_sound = low_bits <= min(8, key_bits) and 2 <= lines <= 1 << key_bits - low_bits
        self.check(is_sound, f"prefix line {name}: divided into {lines} lines of {low_bits} low bits")
        divided = LineShape(key_bits, low_bits, lines)
        is_sound = divided.slots <= MAX_SLOTS and self.main <= first_line and first_line + lines <= len(self.lines)
        self.check(is_sound, f"prefix line {name}: divided into {lines} lines from {first_line} on")
        self.check(first_line == self.next, f"prefix line {name}: line {self.next} is next, not {first_line}")
        self.check(not any(data[2:4] + data[24:]), f"prefix line {name}: reserved bytes")
        self.next += lines
        self.read_group(divided, first_line, first, last)
