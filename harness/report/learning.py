"""The smallest rule that tells the variants that raise from those that do not, learnt from the records alone.

A rule is a list of terms; a variant raises if one of them holds. A term asks for facts of one forward (kernel path, the
RNN's mode, whether a gradient reached its output) and for axis values. The search knows nothing of the rule that the
project believes in: see ``docs/decisions/0032-the-rule-is-learnt.md`` for how it weighs size against exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, groupby, product
from operator import and_, or_
from typing import NamedTuple, TypeVar

from harness.model import Outcome, Record, Sighting, format_value
from harness.results import Result
from harness.rule import JUDGED

EXCEPTION, FACT, AXIS = 4, 1, 6
"""What an unexplained variant, a fact and an axis value cost: an axis has to explain two variants to be worth it."""

MOST_AXES = 2
"""Axis values in one term."""

MOST_TERMS = 4

STRICT = 100
"""How many that raise a term must explain to be forgiven one that does not, in the stricter of two attempts."""

Key = TypeVar("Key")

FACTS = ("path", "training", "gradient_reached")
Facts = tuple[str | bool | None, ...]
"""The three facts of one forward, in the order of ``FACTS``."""


class Literal(NamedTuple):
    """``name`` is ``value``, or is not."""

    name: str
    value: str | bool
    is_: bool = True

    def holds(self, value: str | bool | None) -> bool:
        """Whether it holds of ``value``; what was not seen neither is nor is not anything."""
        return value is not None and (value == self.value) is self.is_


@dataclass(frozen=True)
class Term:
    """Facts that one and the same forward has, and axis values of its variant."""

    facts: tuple[Literal, ...] = ()
    axes: tuple[Literal, ...] = ()

    @property
    def cost(self) -> int:
        """How large it is."""
        return FACT * len(self.facts) + AXIS * len(self.axes)


@dataclass(frozen=True)
class Case:
    """A variant and the forwards that its attempts saw, with the records that saw just these."""

    axes: dict[str, str]
    forwards: frozenset[Facts]
    records: tuple[Record, ...]

    @property
    def raised(self) -> bool | None:
        """Whether it raised; None where its records disagree, though they saw the same."""
        outcomes = {record.outcome is Outcome.BACKWARD_ERROR for record in self.records}
        return outcomes.pop() if len(outcomes) == 1 else None

    def meets(self, term: Term) -> bool:
        """Whether ``term`` holds of it."""
        fits = all(literal.holds(self.axes.get(literal.name)) for literal in term.axes)
        return fits and _meets(self.forwards, term.facts)


@dataclass(frozen=True)
class Learnt:
    """What was learnt on one device: the terms (none: nothing can be learnt), and how they fare."""

    terms: tuple[Term, ...]
    cases: tuple[Case, ...]
    unseen: int
    """Records that did not see enough, or did not live long enough, to learn from."""

    @cached_property
    def unexplained(self) -> tuple[Record, ...]:
        """The records that came out otherwise than the rule says."""
        return tuple(r for case in self.cases for r in case.records if self.says(case) != _raised(r))

    @property
    def records(self) -> int:
        """How many records it was learnt from."""
        return sum(len(case.records) for case in self.cases)

    @property
    def raising(self) -> int:
        """How many of them raised."""
        return sum(_raised(record) for case in self.cases for record in case.records)

    @property
    def axes(self) -> list[str]:
        """The axes that the rule needs beyond the three facts."""
        return sorted({literal.name for term in self.terms for literal in term.axes})

    def says(self, case: Case) -> bool:
        """Whether the rule says that ``case`` raises."""
        return any(case.meets(term) for term in self.terms)

    def score(self) -> int:
        """Size plus exceptions; what the search makes small."""
        wrong = sum(case.raised is not None and case.raised != self.says(case) for case in self.cases)
        return EXCEPTION * wrong + sum(term.cost for term in self.terms)


def learn(results: Iterable[Result]) -> Learnt:
    """The smallest rule over the records of ``results``, which are all of one device."""
    cases, unseen = _cases(results)
    clear = [case for case in cases if case.raised is not None]
    if len({case.raised for case in clear}) < 2:
        return Learnt((), tuple(cases), unseen)
    return Learnt(_Search(clear).terms(), tuple(cases), unseen)


def _raised(record: Record) -> bool:
    return record.outcome is Outcome.BACKWARD_ERROR


def _cases(results: Iterable[Result]) -> tuple[list[Case], int]:
    cases, unseen = [], 0
    for result in results:
        usable = [record for record in result.records if _saw_enough(record)]
        unseen += len(result.records) - len(usable)
        axes = {name: format_value(value) for name, value in result.variant.axes.items()}
        usable.sort(key=lambda record: sorted(map(str, _forwards(record))))
        cases += [Case(axes, seen, tuple(alike)) for seen, alike in groupby(usable, key=_forwards)]
    return cases, unseen


def _saw_enough(record: Record) -> bool:
    known = bool(record.sightings) and all(s.gradient_reached is not None for s in record.sightings)
    return known and record.outcome in JUDGED


def _forwards(record: Record) -> frozenset[Facts]:
    return frozenset(map(_facts, record.sightings))


def _facts(sighting: Sighting) -> Facts:
    return (sighting.path and sighting.path.value, sighting.training, sighting.gradient_reached)


class _Search:
    """Sets of cases are the bits of an integer: what a term covers is then an ``&`` of its literals."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.strictness = 1
        self.raising = _bits(case.raised for case in cases)
        self.fine = _bits(not case.raised for case in cases)
        self.patterns: dict[int, tuple[Literal, ...]] = {}
        self.axes: dict[int, Literal] = {}
        # Of patterns, or axis values, that cover the same cases the first one, which is the smallest, speaks for all.
        seen = _indexed((case.forwards, index) for index, case in enumerate(cases))
        for facts in _patterns(cases):
            cover = _together(bits for forwards, bits in seen.items() if _meets(forwards, facts))
            self.patterns.setdefault(cover, facts)
        for literal, cover in _axis_literals(cases):
            self.axes.setdefault(cover, literal)

    def terms(self) -> tuple[Term, ...]:
        """The best of three attempts: grown from terms that may have exceptions, from such as have as good as none, and
        from the best two that ask for facts alone, which growing one after the other can miss.
        """
        best = min((self._grown(1), self._grown(STRICT), self._polished(self._best_pair())), key=self._score)
        return tuple(sorted((term for _, term in best), key=lambda term: (term.cost, repr(term))))

    def _grown(self, strictness: int) -> list[tuple[int, Term]]:
        """Term by term, each the best there is beside the others, for as long as that makes the whole better."""
        self.strictness = strictness
        chosen: list[tuple[int, Term]] = []
        while len(chosen) < MOST_TERMS:
            grown = self._polished([*chosen, self._best(_union(chosen))])
            if self._score(grown) >= self._score(chosen):
                break
            chosen = grown
        self.strictness = 1
        return self._polished(chosen)

    def _best_pair(self) -> list[tuple[int, Term]]:
        """Of all pairs of facts-only terms the one that explains best; there are few, so all are tried."""
        single = [(cover, Term(facts)) for cover, facts in self.patterns.items()]
        return min(map(list, combinations(single, 2)), key=self._score, default=[])

    def _polished(self, terms: list[tuple[int, Term]]) -> list[tuple[int, Term]]:
        """``terms``, each chosen anew beside the others, until none gets better; superfluous ones are gone."""
        best = self._score(terms)
        improved = True
        while improved:
            improved = False
            for index in range(len(terms)):
                others = [*terms[:index], *terms[index + 1 :]]
                rival = min((others, [*others, self._best(_union(others))]), key=self._score)
                if self._score(rival) < best:
                    terms, best, improved = rival, self._score(rival), True
                    break
        return terms

    def _best(self, covered: int) -> tuple[int, Term]:
        """The term with which the cases that ``covered`` leaves are explained best; of equals the first one."""
        chosen, best = (0, Term()), self._wrong(covered)  # covering nothing, should no term be better than that
        for amount in range(MOST_AXES + 1):
            for cover, literals in self._axis_sets(amount):
                for pattern, facts in self.patterns.items():
                    size = FACT * len(facts) + AXIS * amount
                    if size < best and (score := size + self._wrong(covered | (pattern & cover))) < best:
                        chosen, best = (pattern & cover, Term(facts, literals)), score
            if AXIS * (amount + 1) >= best:
                break
        return chosen

    def _axis_sets(self, amount: int) -> Iterator[tuple[int, tuple[Literal, ...]]]:
        for chosen in combinations(self.axes.items(), amount):
            yield reduce(and_, (cover for cover, _ in chosen), -1), tuple(literal for _, literal in chosen)

    def _score(self, terms: Sequence[tuple[int, Term]]) -> int:
        return self._wrong(_union(terms)) + sum(term.cost for _, term in terms)

    def _wrong(self, covered: int) -> int:
        missed, falsely = (self.raising & ~covered).bit_count(), (self.fine & covered).bit_count()
        return EXCEPTION * (missed + self.strictness * falsely)


def _patterns(cases: Sequence[Case]) -> list[tuple[Literal, ...]]:
    """Every conjunction of facts that occur, small ones first, and of equals the one in plainer words."""
    seen = sorted({facts for case in cases for facts in case.forwards}, key=str)
    choices: list[list[Literal | None]] = []
    for index, name in enumerate(FACTS):
        values = dict.fromkeys(facts[index] for facts in seen)
        known = [value for value in values if value is not None]
        literals = [Literal(name, value) for value in known]
        if name == "path":
            literals += [Literal(name, value, is_=False) for value in known]
        choices.append([*literals, None] if len(values) > 1 else [None])
    every = [tuple(literal for literal in pick if literal) for pick in product(*choices)]
    return sorted(every, key=lambda facts: (len(facts), sum(not literal.is_ for literal in facts)))


def _axis_literals(cases: Sequence[Case]) -> Iterator[tuple[Literal, int]]:
    """``axis is value`` for every value, and its opposite, with the cases of which they hold."""
    for name in dict.fromkeys(name for case in cases for name in case.axes):
        values = _indexed((case.axes[name], index) for index, case in enumerate(cases) if name in case.axes)
        if len(values) > 1:
            every = _together(values.values())
            yield from ((Literal(name, value), cover) for value, cover in values.items())
            yield from ((Literal(name, value, is_=False), every & ~cover) for value, cover in values.items())


def forward_meets(seen: Facts, facts: Iterable[Literal]) -> bool:
    """Whether one forward has all of ``facts``."""
    return all(literal.holds(seen[FACTS.index(literal.name)]) for literal in facts)


def _meets(forwards: Iterable[Facts], facts: Sequence[Literal]) -> bool:
    return any(forward_meets(seen, facts) for seen in forwards)


def _bits(flags: Iterable[object]) -> int:
    return _together(1 << index for index, flag in enumerate(flags) if flag)


def _indexed(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for key, index in pairs:
        found[key] = found.get(key, 0) | 1 << index
    return found


def _together(covers: Iterable[int]) -> int:
    return reduce(or_, covers, 0)


def _union(terms: Iterable[tuple[int, Term]]) -> int:
    return _together(cover for cover, _ in terms)
