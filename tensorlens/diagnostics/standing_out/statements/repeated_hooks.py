"""Names hooks that one line registers again and again on the same tensor or module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at, ordinal
from tensorlens.records.callbacks import Registration
from tensorlens.records.report import StandingOut
from tensorlens.records.source import one_line
from tensorlens.records.training import HookCount

_OF_TENSORS = ("tensor hook", "post-accumulate hook")
_NAMED = 3


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds hooks of which later looks at the run find more than earlier ones, and the last look the most."""
    trace = training.facts.trace
    looks: dict[int, list[HookCount]] = defaultdict(list)
    for each in trace.inspection.hooks:
        looks[each.registration].append(each)
    groups: dict[tuple[int, int, int, str], list[Registration]] = defaultdict(list)
    for registration in trace.callbacks.registrations:
        found = looks.get(registration.id, [])
        if found and _grows(found):
            groups[registration.site, found[-1].count, found[-1].passes, registration.kind].append(registration)
    for (_, count, passes, _), registrations in groups.items():
        yield _sentence(training, registrations, count, passes)


def _grows(found: list[HookCount]) -> bool:
    counts = [each.count for each in found]
    first = counts[0] if found[0].passes <= 1 else 1
    return counts[-1] >= 2 and counts[-1] == max(counts) and counts[-1] > first


def _sentence(training: MeasuredTraining, registrations: list[Registration], count: int, passes: int) -> StandingOut:
    facts, first = training.facts, registrations[0]
    code = _registering(training, first)
    is_tensor = first.kind in _OF_TENSORS
    runs = "each backward pass that gets there" if "backward" in first.kind or is_tensor else "each call of the module"
    text = f"{code} has added {count} hooks to {_targets(training, registrations)} until the {ordinal(passes)} pass"
    text += f": {runs} runs all {count}"
    if is_tensor and _changes(training, registrations):
        text += ", and each returns another gradient"
    function = facts.trace.callbacks.functions[first.function]
    defined = facts.label("function_defined_here", function.defined, "the hook")
    return stands_out(text, facts.label("hook_registered_here", first.site, "registered again"), defined)


def _registering(training: MeasuredTraining, registration: Registration) -> str:
    """Returns what the script writes to register a hook, without long arguments."""
    facts, span = training.facts, training.facts.span(registration.site)
    node = None if span is None else facts.names.syntax.node(span)
    code = code_at(facts, registration.site, registration.kind)
    if span is None or not isinstance(node, ast.Call) or "..." not in code:
        return code
    return f"`{one_line(facts.code_of(node.func, span.file), 60)}(...)`"


def _targets(training: MeasuredTraining, registrations: list[Registration]) -> str:
    if registrations[0].kind not in _OF_TENSORS:
        return "one module" if len(registrations) == 1 else f"each of {len(registrations)} modules"
    rows = [training.row(each.target) for each in registrations if each.target is not None]
    names = [f"`{row.name}`" for row in rows if row is not None]
    if len(names) < len(registrations) or not names:
        return "one tensor" if len(registrations) == 1 else f"each of {len(registrations)} tensors"
    if len(names) == 1:
        return names[0]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else f" and {names.pop()}"
    return f"each of {', '.join(names[:_NAMED])}{more}"


def _changes(training: MeasuredTraining, registrations: list[Registration]) -> bool:
    """Returns whether every recorded run of a hook returned another gradient than it was given."""
    numbers = {each.id for each in registrations}
    runs = [run for run in training.facts.trace.callbacks.runs if run.registration in numbers]
    return bool(runs) and all(
        any(value.tensor is not None and value.tensor not in run.given for value in run.values) for run in runs
    )
