"""Names a tensor that several modules were given, and that a line changed in place for each of them: it is one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from math import prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_ITEM = re.compile(r"^(.+)\[\d+\](\.\w+)$")
_MIN_MODULES = 3
_CHANGING = frozenset(  # what a tensor holds: others fill it
    "neg add iadd sub isub mul imul div idiv logical_not bitwise_not logical_xor bitwise_xor pow square copy".split()
)


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if a line changed the tensor about once for each module, before the first backward pass only.

    It computes the whole tensor from what it held, as `mask.neg_()`: to fill one table, row by row, is usual.
    """
    facts = training.facts
    first = facts.backwards[0].index if facts.backwards else 0
    held: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    named = {each.name: each.tensor for each in facts.trace.end.bindings}
    for reached in facts.trace.inspection.reached[-1:]:
        named |= dict(zip(reached.names, reached.tensors, strict=True))
    for name, number in named.items():
        match = _ITEM.match(name)
        if match is not None and facts.tensor(number).type != "Parameter":
            held[number, match[1], match[2]].append(name)
    reported = set[int]()
    for (number, _, _), names in held.items():
        writes = [(event, write) for event, write in facts.writes(facts.tensor(number).counter)]
        calls = [event for event, _ in writes if isinstance(event, Call)]
        if number in reported or len(names) < _MIN_MODULES or not calls or len(calls) < len(writes):
            continue
        if calls[-1].index > first or not _is_between(training, calls, names[-2:]):
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


def _is_changed(facts: TraceIndex, call: Call, number: int) -> bool:
    """Returns whether a call computes a tensor of several elements from what it held, and not by an attribute, as the
    constructors of the modules may.
    """
    name, shape = op_name(call), facts.tensor(number).shape
    span = facts.span(call.site)
    is_attribute = span is not None and facts.names.syntax.text(span, 1_000).startswith("self.")
    if name not in _CHANGING or prod(shape) < 2 or is_attribute:
        return False
    if name != "copy":
        return True
    sources = (made for access in call.inputs[1:] for made in facts.producers(access.tensor, call.index))
    return any(each.tensor == number for made in sources for each in made.inputs)


def _is_between(training: MeasuredTraining, calls: list[Call], names: list[str]) -> bool:
    """Returns whether one of some calls comes after the last module but one is made, and before the last one is."""
    made = []
    for name in names:
        owner = name.rpartition(".")[0] + "."
        creators = (training.facts.creator(row.tensor) for row in training.rows if row.name.startswith(owner))
        made.append(min((call.index for call in creators if call is not None), default=-1))
    return min(made) >= 0 and any(made[0] < call.index < made[1] for call in calls)
