"""Completeness of a segment's tables: plan.md, section "Completeness".

The tables are complete if they find all neighbours within the distance: however at most so many errors are spread over the bits, at
least one table has at most its flips of errors in its prefix. The number of calls is part of the format, so all readers accept the
same plans.
"""

MAX_CALLS = 1_000_000


class TooManyCalls(Exception):
    """The check takes more than MAX_CALLS calls."""


class ErrorSearch:
    """Looks for errors that all tables miss. Bits in the prefixes of the same tables are interchangeable: they form a *group*."""

    def __init__(self, tables):
        prefixes = [set(table.permutation[: table.prefix_bits]) for table in tables]
        bits_of = {}
        for bit in range(tables[0].bits):
            members = tuple(t for t, prefix in enumerate(prefixes) if bit in prefix)
            bits_of.setdefault(members, []).append(bit)
        # Python keeps the order of insertion: groups are in the order of their lowest bit.
        self.tables_of = list(bits_of)
        self.size = [len(bits) for bits in bits_of.values()]
        self.groups_of = [[g for g, members in enumerate(self.tables_of) if t in members] for t in range(len(tables))]
        self.need = [table.flips + 1 for table in tables]
        self.errors = [0] * len(self.size)
        self.calls = 0

    def is_missed(self, left, forbidden):
        """Whether `left` more errors outside the forbidden groups make all tables miss."""
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise TooManyCalls
        t = self.need.index(max(self.need))
        if self.need[t] <= 0:
            return True
        if self.need[t] > left or self.need_together() > left:
            return False
        for g in self.groups_of[t]:
            if g in forbidden or self.errors[g] == self.size[g]:
                continue
            self.put_errors(g, 1)
            if self.is_missed(left - 1, forbidden):
                return True
            self.put_errors(g, -1)
            forbidden = forbidden | {g}
        return False

    def need_together(self):
        """Returns a number of errors that tables without common groups need together."""
        used, together = set(), 0
        for groups, need in zip(self.groups_of, self.need):
            if need > 0 and used.isdisjoint(groups):
                used.update(groups)
                together += need
        return together

    def put_errors(self, g, errors):
        self.errors[g] += errors
        for u in self.tables_of[g]:
            self.need[u] -= errors


def are_complete(tables, distance):
    """Whether the tables are complete. If the check takes too many calls, they count as incomplete."""
    try:
        return not ErrorSearch(tables).is_missed(distance, frozenset())
    except TooManyCalls:
        return False
