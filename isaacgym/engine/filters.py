"""Contact masks -> filter bits: shapes that share a bit never touch (Isaac Gym API notes 11)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

MAX_BITS = 31

Pair = tuple[int, int]


def ordered(a: int, b: int) -> Pair:
    """The pair with the smaller number first."""
    return (a, b) if a < b else (b, a)


def masks_forbid(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """True when neither geom's contype (first) meets the other's conaffinity (second)."""
    return not (a[0] & b[1] or b[0] & a[1])


def assign_bits(count: int, forbidden: Collection[Pair], free: Collection[Pair]) -> tuple[list[int], list[Pair]]:
    """Filter words for ``count`` shapes, and the forbidden pairs for which no bit was left.

    ``forbidden`` pairs must share a bit, ``free`` pairs may or may not, all others share none. Each bit covers one
    clique of forbidden and free pairs, grown greedily around a pair that is not covered yet. High bits come first,
    so that the small filters programs give to other actors stay clear of them.
    """
    allowed_together = set(forbidden) | set(free)
    words = [0] * count
    uncovered = set(forbidden)
    bit = 0
    while uncovered and bit < MAX_BITS:
        clique = _grow(min(uncovered), count, allowed_together, uncovered)
        for shape in clique:
            words[shape] |= 1 << (MAX_BITS - 1 - bit)
        uncovered -= {ordered(a, b) for i, a in enumerate(clique) for b in clique[i + 1 :]}
        bit += 1
    return words, sorted(uncovered)


def _grow(start: Pair, count: int, together: Collection[Pair], uncovered: Collection[Pair]) -> list[int]:
    """A maximal clique of ``together`` around a pair, taking first what covers most of ``uncovered``."""
    clique = list(start)
    candidates = [n for n in range(count) if n not in clique and _joins(n, clique, together)]
    while candidates:
        best = max(candidates, key=lambda n: (sum(ordered(n, member) in uncovered for member in clique), -n))
        clique.append(best)
        candidates = [n for n in candidates if n != best and ordered(n, best) in together]
    return clique


def _joins(shape: int, clique: Iterable[int], together: Collection[Pair]) -> bool:
    return all(ordered(shape, member) in together for member in clique)


def body_pairs(pairs: Iterable[Pair], body_of: Sequence[int]) -> list[Pair]:
    """The pairs of bodies to which pairs of shapes belong."""
    return sorted({ordered(body_of[a], body_of[b]) for a, b in pairs})
