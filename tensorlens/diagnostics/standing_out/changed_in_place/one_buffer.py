"""Names a tensor that several modules were given, and that a line changed in place for each of them: it is one."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from math import prod

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_PART = re.compile(r"\.?[^.\[]+|\[[^]]*\]")
_WHOLE = (":", "...", "slice(None)")
_MIN_MODULES = 3
_MAX_CALLS = 6
_CHANGING = frozenset(  # what a tensor holds: others fill it
    "neg add iadd sub isub mul imul div idiv logical_not bitwise_not logical_xor bitwise_xor ixor pow ipow square copy "
    "setitem floor_divide ifloordiv true_divide remainder exp sqrt rsqrt reciprocal cumsum".split()
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a line changed the tensor about once for each module, before the first backward pass only.

    It computes the whole tensor from what it held, as `mask.neg_()`: to fill one table, row by row, is usual.
    """
    facts = training.facts
    first = facts.backwards[0].index if facts.backwards else 0
    named = {each.name: each.tensor for each in facts.trace.end.bindings}
    for reached in facts.trace.inspection.reached[-1:]:
        named |= dict(zip(reached.names, reached.tensors, strict=True))
    reported = set[int]()
    for number, members in _held(facts, named):
        names = list(members.values())
        writes = [(event, write) for event, write in facts.writes(facts.tensor(number).counter)]
        calls = [event for event, _ in writes if isinstance(event, Call)]
        if number in reported or len(names) < _MIN_MODULES or not calls or len(calls) < len(writes):
            continue
        if calls[-1].index > first or not _is_between(training, calls, list(members)[-2:]):
            continue
        if not all(write.tensor == number for _, write in writes[1:]) or not _is_changed(facts, calls[-1], number):
            continue
        last, changes = calls[-1], writes[-1][1].after  # a run of one line may stand for several
        if changes < len(names) - 1 or not all(facts.same_line(call.site, last.site) for call in calls[1:]):
            continue
        reported.add(number)
        yield stands_out(
            f"`{names[0]}`, `{names[1]}` and {len(names) - 2} more are one tensor, which {as_written(facts, last)} has "
            "changed in place between the modules: all of them have its last values",
            facts.label("modified_here", last.site, "changed here, in place", last.index),
        )


def _held(facts: TraceIndex, named: dict[str, int]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields each tensor that several modules hold in the same place, with these modules and its names in them.

    The names differ in one part: an index, a key of a dict of modules, or an attribute.
    """
    held: dict[tuple[int, str, str], dict[str, str]] = defaultdict(dict)
    for name, number in named.items():
        parts = [match.group() for match in _PART.finditer(name)]
        if facts.tensor(number).type != "Parameter" and "".join(parts) == name:
            for place in range(1, len(parts) - 1):
                before, after = "".join(parts[:place]), "".join(parts[place + 1 :])
                held[number, before, after][before + parts[place]] = name
    yield from ((number, members) for (number, _, _), members in held.items())


def _is_changed(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether a call computes a tensor of several elements from what it held, and not by an attribute, as the
    constructors of the modules may.
    """
    name, shape = op_name(call), facts.tensor(number).shape
    span = facts.span(call.site)
    is_attribute = span is not None and facts.names.syntax.text(span, 1_000).startswith("self.")
    if name not in _CHANGING or prod(shape) < 2 or is_attribute or (name == "setitem" and not _is_whole(facts, call)):
        return False
    if name in ("copy", "setitem"):
        steps = islice(ancestry(facts, call.inputs[-1].tensor, call.index), _MAX_CALLS)
        return len(call.inputs) == 2 and any(each.tensor == number for _, made in steps for each in made.inputs)
    own = sum(access.tensor == number for access in call.inputs)
    return own > 1 or call.op.endswith("_")  # as `torch.mul(mask, 2, out=mask)`, and `mask.mul_(2)`


def _is_whole(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a line writes to all elements, as `mask[:] = 1 - mask`."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Subscript) and ast.unparse(target.slice) in _WHOLE


def _is_between(training: MeasuredTraining, calls: list[Call], members: list[str]) -> bool:
    """Returns whether one of some calls comes after the last module but one is made, and before the last one is."""
    made = []
    for member in members:
        rows = (row for row in training.rows if row.name.startswith((f"{member}.", f"{member}[")))
        creators = (training.facts.creator(row.tensor) for row in rows)
        made.append(min((call.index for call in creators if call is not None), default=-1))
    return min(made) >= 0 and any(made[0] < call.index < made[1] for call in calls)
