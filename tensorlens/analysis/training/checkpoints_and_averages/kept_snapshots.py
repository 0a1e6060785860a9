"""Finds aliases of a parameter that a script keeps as its values at several times, by the lines that read them.

One line makes an alias again and again, with steps of an optimizer in between. A live view needs no second alias.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.one_memory import origin
from tensorlens.records.model import Call
from tensorlens.records.training import SavedToFile

_LOADS = "Module.load_state_dict"
_MIN_ROUNDS = 2  # of aliases that a line reads after a newer one was made

Reader = Call | SavedToFile


@dataclass(frozen=True, slots=True)
class _Kept:
    tensor: int
    made: Call
    round: int  # how many steps changed the parameter before
    readers: Sequence[Reader]


def snapshots(
    facts: TraceIndex,
    aliases: Iterable[tuple[int, int]],
    readers: Mapping[int, Sequence[Reader]],
    steps: Mapping[int, Sequence[int]],
) -> dict[int, Reader]:
    """Returns the aliases that are kept as earlier values, each with its last reader.

    `aliases` has pairs of an alias and its parameter, `steps` the events of the steps that change each parameter.
    """
    groups: dict[tuple[int, str, int], list[_Kept]] = defaultdict(list)
    for number, parameter in aliases:
        made = facts.creator(number)
        if made is not None and origin(facts, number) == origin(facts, parameter):
            kept = _Kept(number, made, bisect_left(steps.get(parameter, ()), made.index), readers.get(number, ()))
            groups[made.site, made.op, parameter].append(kept)
    runs = _runs(facts, groups)
    found: dict[int, Reader] = {}
    for (site, op, parameter), group in groups.items():
        changes = steps.get(parameter, ())
        if len({bisect_left(changes, index) for index in runs[site, op]}) > 1:
            group.sort(key=lambda each: each.made.index)
            found |= _held_together(facts, group)
            found |= _stored_at_last(facts, group, changes)
    return found


def _runs(facts: TraceIndex, groups: Iterable[tuple[int, str, int]]) -> dict[tuple[int, str], list[int]]:
    """Returns the events at which the lines of some aliases made one, also those that nothing reads."""
    runs: dict[tuple[int, str], list[int]] = {(site, op): [] for site, op, _ in groups}
    for call in facts.calls:
        if (call.site, call.op) in runs:
            runs[call.site, call.op].append(call.index)
    return runs


def is_load(facts: TraceIndex, reader: Reader) -> bool:
    return isinstance(reader, Call) and facts.trace.sites[reader.site].through == _LOADS


def _held_together(facts: TraceIndex, group: list[_Kept]) -> dict[int, Reader]:
    """Returns the aliases that a line reads after a newer one was made that it reads, too: the script holds both.

    An object may have a view of its own, and so may a second object of its class: an alias that is made for an
    attribute counts only where it is loaded or saved.
    """
    is_own = _is_for_attribute(facts, group[0].made)
    lines: dict[int | None, list[tuple[_Kept, Reader]]] = defaultdict(list)
    for kept in group:
        last = {each.site: each for each in kept.readers if not is_own or _is_stored(facts, each)}
        for site, reader in last.items():
            lines[site].append((kept, reader))
    found: dict[int, Reader] = {}
    for read in lines.values():
        newer = [next((each for each, _ in read if each.round > kept.round), None) for kept, _ in read]
        older = [
            (kept, reader, other)
            for (kept, reader), other in zip(read, newer, strict=True)
            if other is not None and other.made.index < reader.index
        ]
        is_one_call = any(_reads(reader, other.tensor) for _, reader, other in older)
        if is_one_call or len({kept.round for kept, _, _ in older}) >= _MIN_ROUNDS:
            found |= {kept.tensor: reader for kept, reader, _ in older}
    return found


def _stored_at_last(facts: TraceIndex, group: list[_Kept], steps: Sequence[int]) -> dict[int, Reader]:
    """Returns the aliases that were made before the last step, if only loads and files read any, and when all steps are
    over."""
    readers = [each for kept in group for each in kept.readers]
    if not steps or not all(each.index > steps[-1] and _is_stored(facts, each) for each in readers):
        return {}
    return {kept.tensor: kept.readers[-1] for kept in group if kept.readers and kept.made.index < steps[-1]}


def _is_stored(facts: TraceIndex, reader: Reader) -> bool:
    return isinstance(reader, SavedToFile) or is_load(facts, reader)


def _reads(reader: Reader, number: int) -> bool:
    return isinstance(reader, Call) and any(access.tensor == number for access in reader.inputs)


def _is_for_attribute(facts: TraceIndex, made: Call) -> bool:
    """Returns whether the statement that makes an alias assigns to an attribute, as `self.views = [...]` does."""
    span = facts.span(made.site)
    statement = None if span is None else statement_around(facts, span)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(isinstance(each, ast.Attribute) for each in targets)
