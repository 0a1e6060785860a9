"""Names members of a list, and pairs such as `q1` and `q2`, that are the same model at the end, and parameters whose
rows are all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensorlens.analysis.training.changed_gradients import is_clip
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.diagnostics.shared.optimizers import born
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.records.report import StandingOut

_COMPARING = frozenset(("equal", "allclose", "isclose", "assert_close"))
_INDEX = re.compile(r"\[\d+\]")
_NUMBER = re.compile(r"(?<=\w)(\d+|_[ab])$")
_PART = re.compile(r"\.?[^.\[]+|\[[^]]*\]")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    yield from _members(training)
    yield from _rows(training)


def _members(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds members whose parameters, two or more, each equal those of another member."""
    facts, number = training.facts, training.measured.number
    last = [each for each in facts.trace.inspection.equal if each.number == number]
    if not last or _compares(training):
        return
    every = {tensor for each in last for tensor in each.tensors if not training.writes(tensor)}  # no line copied them
    apart = {tensor for tensor in every if not _is_shared(training, tensor)}
    equal = [apart.intersection(each.tensors) for each in last]
    names = {row.name: row for row in training.rows}
    pairs: dict[str, dict[str, set[str]]] = {}  # list -> member -> members like it
    for group in equal:
        rows = [row for row in training.rows if row.tensor in group]
        for place, one in enumerate(rows):
            for other in rows[place + 1 :]:
                for prefix, first, second in (*_siblings(one.name, other.name), *_twins(one.name, other.name)):
                    pairs.setdefault(prefix, {}).setdefault(first, set()).add(second)
    said = set[str]()
    for prefix, members in sorted(pairs.items(), key=lambda pair: len(pair[0])):
        for first, others in members.items():
            own = [name for name in names if name.startswith(first)]
            same = [other for other in sorted(others, key=_number) if _is_same(names, own, (first, other), equal)]
            if len(own) < 2 or not same or any(first.startswith(each) for each in said):
                continue
            said |= {first, *same}
            steps = min(each.rounds for each in last if names[own[0]].tensor in each.tensors)
            of = f" of `{prefix}`" if prefix else ""
            others_text = f"`{same[0]}`" if len(same) == 1 else f"{len(same)} others{of}"
            text = f"`{first}` and {others_text} are equal in every bit after {steps:,} steps have moved"
            made = born(facts, names[own[0]].tensor), born(facts, names[own[0].replace(first, same[0], 1)].tensor)
            yield stands_out(
                f"{text} each of them",
                facts.label("leaf_made_here", made[1], "made here"),
                facts.label("leaf_made_here", made[0], "made here"),
            )


def _is_shared(training: MeasuredTraining, tensor: int) -> bool:
    """Returns whether a line changes the gradient of a parameter, as to the mean of those of several replicas."""
    moments = (each for each in training.training.moments.get(tensor, ()) if each.kind == "touch")
    return any(not is_clip(training, each.event.site or 0) for each in moments)


def _compares(training: MeasuredTraining) -> bool:
    """Returns whether the program compares tensors after its last step: two runs may be meant to be the same."""
    last = max((step.index for step in training.training.steps), default=0)
    return any(call.index > last and op_name(call) in _COMPARING for call in training.facts.calls)


def _siblings(one: str, other: str) -> Iterator[tuple[str, str, str]]:
    """Yields (list, member, member) if two names differ in one index only: ("m", "m[0]", "m[1]")."""
    first, second = list(_INDEX.finditer(one)), list(_INDEX.finditer(other))
    if _INDEX.split(one) != _INDEX.split(other) or len(first) != len(second):
        return
    differ = [n for n in range(len(first)) if first[n].group() != second[n].group()]
    if len(differ) == 1:
        place = first[differ[0]], second[differ[0]]
        yield one[: place[0].start()], one[: place[0].end()], other[: place[1].end()]


def _twins(one: str, other: str) -> Iterator[tuple[str, str, str]]:
    """Yields (what holds both, module, module) if two names differ in a number: ("self", "self.q1", "self.q2").

    `one` and `other` may be there to be compared.
    """
    first, second = _PART.findall(one), _PART.findall(other)
    differ = [n for n in range(min(len(first), len(second))) if first[n] != second[n]]
    if len(first) == len(second) > 1 and len(differ) == 1 and differ[0] < len(first) - 1:
        place = differ[0]
        if _NUMBER.sub("", first[place]) == _NUMBER.sub("", second[place]):
            yield "".join(first[:place]), "".join(first[: place + 1]), "".join(second[: place + 1])


def _is_same(names: dict[str, ParameterRow], own: list[str], members: tuple[str, str], equal: list[set[int]]) -> bool:
    """Returns whether each parameter of a member equals that of another one in the same place."""
    first, second = members
    pairs = [(names[name], names.get(name.replace(first, second, 1))) for name in own]
    return all(b is not None and any({a.tensor, b.tensor} <= group for group in equal) for a, b in pairs)


def _number(member: str) -> tuple[int, str]:
    found = _INDEX.findall(member)
    return int(found[-1].strip("[]")) if found else 0, member


def _rows(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    found = [each for each in facts.trace.inspection.equal_rows if each.number == training.measured.number]
    rows = [row for each in found if (row := training.row(each.tensor)) and not training.writes(each.tensor)]
    if rows:
        which = listed(rows) if len(rows) == 1 else f"each of {listed(rows)}"
        steps = min(each.rounds for each in found)
        yield stands_out(
            f"all rows of {which} are equal in every bit after {steps:,} steps have moved them",
            facts.label("leaf_made_here", born(facts, rows[0].tensor), "made here"),
        )
