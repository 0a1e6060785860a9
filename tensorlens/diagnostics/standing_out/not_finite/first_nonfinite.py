"""Names the operation that makes the first NaN or infinity of a loss or a gradient, and what it is given there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import inf, prod

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at, named, node_text, op_text, ordinal
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training import FirstNonfinite, NonfiniteSeen

WORDS = {"nan": "NaN", "inf": "infinity", "-inf": "infinity"}


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds the operation, in the facts of the second run. A finding about its derivative has said it already."""
    inspection = training.facts.trace.inspection
    for seen, origin in zip(inspection.nonfinite, inspection.origins, strict=False):
        if _is_dropped(training, seen) or _is_scaled(training, seen, origin):
            continue
        if not origin.kind:
            if not inspection.singular:
                yield _unknown(training, seen, origin)
        elif origin.kind != "backward" or not _is_found_already(training.facts, origin):
            yield _known(training, seen, origin)


def _is_dropped(training: MeasuredTraining, seen: NonfiniteSeen) -> bool:
    """Returns whether no step follows before the next pass: a script that scales its loss skips the step then.

    The gradient is one of a leaf that no optimizer holds, as of the half-precision weights of a master copy.
    """
    held = {number for group in training.groups for number in group.parameters}
    if seen.kind != "gradient" or not held or seen.tensor in held:
        return False
    passes = [each.started for each in training.facts.backwards if each.started > seen.index]
    steps = [each.index for each in training.training.steps if each.index > seen.index]
    return bool(passes) and min(passes) < min(steps, default=inf)


def _is_scaled(training: MeasuredTraining, seen: NonfiniteSeen, origin: FirstNonfinite) -> bool:
    """Returns whether a `GradScaler` multiplies a finite loss by too large a scale: it skips the step then."""
    facts = training.facts
    if not any(call.op.startswith("GradScaler") for call in facts.calls):
        return False
    held = [group for group in training.groups if seen.tensor in group.parameters]
    if seen.kind == "gradient" and held and not any(group.steps for group in held):
        return True
    node = facts.node_at(origin.site)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale"


def _is_found_already(facts: TraceIndex, origin: FirstNonfinite) -> bool:
    """Returns whether a finding names the line as one whose derivative is not finite."""
    calls = (facts.call_of_node(each.sequence, each.index) for each in facts.trace.inspection.singular)
    return any(call is not None and facts.same_line(call.site, origin.site) for call in calls)


def _known(training: MeasuredTraining, seen: NonfiniteSeen, origin: FirstNonfinite) -> StandingOut:
    facts, what = training.facts, _what(seen, origin)
    subject = f"the first {what} that gets to {_target(facts, seen)}"
    if origin.mixed:
        subject = f"the earliest {what} in what {_target(facts, seen)} is computed from"
    when = f"{_moment(training, origin)} a second run{_share(origin)}"
    code = _written(facts, origin.site, origin.op)
    text, given = f"{subject} is made by {code} {when}", _given(origin)
    if origin.kind == "backward":
        text = f"{subject} is made in backward by {_recorded(facts, origin)} {when}"
    elif origin.kind == "sum":
        text = f"{subject} is in the gradient of what {_recorded(facts, origin)} returns {when}"
        given = "finite gradients are added there, or a hook changes one"
    elif origin.kind == "constant":
        text, given = f"{subject} is one that the script gives, in {code} {when}", _where(origin)
    elif origin.kind == "data":
        text, given = f"{subject} is in what {code} returns {when}", _where(origin)
    elif origin.kind == "unknown":
        text = f"{subject} is in what {code} is given {when}"
        given = f"{_where(origin)}{', and ' if _where(origin) else ''}what makes it is not seen"
    text += f": {given}" if given else ""
    if origin.then_op:
        text += f"; {_written(facts, origin.then_site, origin.then_op)} makes NaN of it"
    return stands_out(text, *_labels(facts, seen, origin))


def _what(seen: NonfiniteSeen, origin: FirstNonfinite) -> str:
    """Returns what the operation makes: of a complex NaN, for example, `abs` makes an infinity."""
    if origin.value == "nan" != seen.value:
        return "value that is not finite"
    return WORDS.get(origin.value, "NaN")


def _labels(facts: TraceIndex, seen: NonfiniteSeen, origin: FirstNonfinite) -> Iterator[Label | None]:
    role = "graph_built_here" if origin.kind in ("backward", "sum") else "value_made_here"
    yield facts.label(role, origin.site, f"the first {_what(seen, origin)}")
    yield facts.label("value_made_here", origin.then_site, "makes NaN of it")
    yield facts.label("value_made_here", origin.given_site, "the infinity is given here")
    if seen.kind == "loss":
        yield _of_pass(facts, seen, origin.seen_site)


def _of_pass(facts: TraceIndex, seen: NonfiniteSeen, site: int | None) -> Label | None:
    return facts.label("needed_here", site, f"the loss of this backward is {seen.value}")


def _unknown(training: MeasuredTraining, seen: NonfiniteSeen, origin: FirstNonfinite) -> StandingOut:
    facts = training.facts
    state = f"{_target(facts, seen)} is {seen.value}"
    if seen.kind == "gradient":
        state = f"{_target(facts, seen)} has {'NaN' if seen.value == 'nan' else 'infinities'}"
    moment = _moment(training, origin).removesuffix(" of").removesuffix("in")
    why = "what makes it is not known" if origin.searched else "what makes it was not searched"
    passes = [each for each in facts.backwards if each.started == seen.index and seen.kind == "loss"]
    labels = (_of_pass(facts, seen, each.site) for each in passes)
    return stands_out(f"{state}{' ' if moment else ''}{moment}; {why}: {origin.reason}", *labels)


def _target(facts: TraceIndex, seen: NonfiniteSeen) -> str:
    return "the loss" if seen.kind == "loss" else f"the gradient of {named(facts, seen.tensor, seen.index)}"


def _recorded(facts: TraceIndex, origin: FirstNonfinite) -> str:
    return node_text(origin.node) if origin.site is None else _written(facts, origin.site, origin.op)


def _written(facts: TraceIndex, site: int | None, op: str) -> str:
    """Returns the call as the script writes it: of a call inside a module or library, also what runs there."""
    code, span = code_at(facts, site, op), facts.span(site)
    node = None if span is None else facts.names.syntax.node(span)
    name = op.rpartition(".")[2]
    function = node.func if isinstance(node, ast.Call) else None
    called = getattr(function, "attr", getattr(function, "id", name))
    return code if called == name else f"{op_text(op)} in {code}"


def _moment(training: MeasuredTraining, origin: FirstNonfinite) -> str:
    """Says when: "in the 12th training step of"; "in" if there is only one."""
    measured = training.measured
    if origin.kind and not origin.passes and not origin.steps and measured.passes > 1:
        return "before the first backward pass of"
    optimizers = {group.optimizer for group in training.groups if group.steps}
    if len(optimizers) == 1 and not origin.within:
        return "in" if measured.steps == 1 else f"in the {ordinal(origin.steps + 1)} training step of"
    if measured.passes < 2:
        return "in"
    if origin.kind in ("backward", "sum"):
        return f"in the {ordinal(origin.passes)} backward pass of"
    return f"before the {ordinal(origin.passes + 1)} backward pass of" if origin.kind else "in"


def _share(origin: FirstNonfinite) -> str:
    total = prod(origin.shape)
    return f", with {origin.count} of {total} elements not finite" if total > 1 else ""


def _given(origin: FirstNonfinite) -> str:
    """Says what the operation is given where its result is not finite."""
    place = f"at {list(origin.position)} " if origin.position else ""
    if origin.names:
        values = [_saved(*pair) for pair in zip(origin.names, origin.operands, strict=False)]
        return f"{place}{_listed(values)}"
    if origin.scope == "element":
        return f"{place}it is given {_listed(origin.operands)}"
    if origin.scope == "slice":
        part = [":" if n == origin.dimension else str(p) for n, p in enumerate(origin.position)]
        return f"all that it is given in [{', '.join(part)}] is {origin.operands[0]}"
    if origin.scope == "empty":
        return "it is given a tensor without elements"
    return f"it is given {_listed(origin.operands)}" if origin.operands else ""


def _saved(name: str, value: str) -> str:
    return f"the gradient that it receives is {value}" if name == "gradient" else f"its saved `{name}` is {value}"


def _where(origin: FirstNonfinite) -> str:
    return f"element {list(origin.position)} is {origin.value}" if origin.position else ""


def _listed(values: list[str] | tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(values[:-1]), *values[-1:]]))
