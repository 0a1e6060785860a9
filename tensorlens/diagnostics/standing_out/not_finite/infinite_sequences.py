"""Names CTC losses that leave out many sequences: their loss is infinite, and `zero_infinity` makes it zero."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_values import ZeroedSequences

_LEAST = 0.1  # of the sequences; a few that are too long for their output are usual
_MIN_PASSES = 3
_SHORTENING = 1.5
_LAYERS = frozenset(
    "conv1d conv2d conv3d max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_max_pool1d adaptive_max_pool2d interpolate".split()
)
_VIEWS = frozenset(("getitem", "view", "reshape", "index_select"))


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    facts = training.facts
    backwards = {each.started: each for each in facts.backwards}
    sites: dict[int, list[tuple[Backward, ZeroedSequences]]] = defaultdict(list)
    for each in facts.trace.inspection.zeroed_sequences:
        if each.index in backwards:
            sites[backwards[each.index].site].append((backwards[each.index], each))
    for found in sites.values():
        infinite, all_of_them = sum(each.infinite for _, each in found), sum(each.sequences for _, each in found)
        call, short = _loss(facts, found[0][0]), sum(each.short for _, each in found)
        if call is None or infinite < _LEAST * all_of_them or len(found) < _MIN_PASSES:
            continue
        why = f" ({short:,} have fewer steps than labels)" if short else ""
        yield stands_out(
            f"{as_written(facts, call)} is infinite for {infinite:,} of {all_of_them:,} sequences{why}, and "
            "`zero_infinity` makes it 0: this loss gives them no gradient",
            facts.label("value_made_here", call.site, "infinite losses become 0", call.index),
            _setting(facts, call),
            *(
                facts.label("value_made_here", site, f"shortened here: {text}")
                for site, text in (_shortening(facts, call).items() if short else ())
            ),
            facts.label("needed_here", found[0][0].site, "backward"),
        )


def _loss(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the only CTC loss of a pass."""
    calls = [call for call in recorded_above(facts, backward) if op_name(call) == "ctc_loss"]
    return calls[0] if len(calls) == 1 else None


def _setting(facts: TraceIndex, loss: Call) -> Label | None:
    """Returns the only place of the program that sets `zero_infinity`: a call, an assignment, a field or an item."""
    found = [
        Label("observed_here", facts.span_of(node, file), "`zero_infinity` is set here")
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if _sets(node)
    ]
    span = facts.span(loss.site)
    is_other = len(found) == 1 and span is not None and (found[0].span.file, found[0].span.line) != (
        span.file, span.line)  # fmt: skip
    return found[0] if is_other else None


def _sets(node: ast.AST) -> bool:
    name = "zero_infinity"
    match node:
        case ast.Call():
            values = [each.value for each in node.keywords if each.arg == name]
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            values += node.args[2:3] if called == "CTCLoss" else []
        case ast.Assign():
            values = [
                node.value for each in node.targets if name in (getattr(each, "attr", ""), getattr(each, "id", ""))
            ]
        case ast.AnnAssign(value=ast.expr() as value):
            values = [value] if name in (getattr(node.target, "attr", ""), getattr(node.target, "id", "")) else []
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            values = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name]
        case _:
            return False
    return any(not (isinstance(each, ast.Constant) and not each.value) for each in values)


def _shortening(facts: TraceIndex, loss: Call) -> dict[int, str]:
    """Returns the lines above a loss that shorten the dimension of its steps, with both lengths."""
    steps, found = facts.tensor(loss.inputs[0].tensor).shape[0], dict[int, tuple[int, int]]()
    above = {call.index: call for _, call in ancestry(facts, loss.inputs[0].tensor, loss.index)}
    for call in (above[index] for index in sorted(above, reverse=True)):
        name = op_name(call)
        if name not in _LAYERS | _VIEWS or not call.inputs or not call.outputs:
            continue
        shapes = [facts.tensor(each[0].tensor).shape for each in (call.inputs, call.outputs)]
        if len(shapes[0]) != len(shapes[1]):
            continue
        pairs = list(zip(*shapes, strict=True))[2 if name in _LAYERS else 0 :]
        long = next((one for one, other in pairs if other == steps and one >= _SHORTENING * steps), None)
        if long is not None:
            found[call.site] = long, found.get(call.site, (0, steps))[1]  # a loop over layers has one line
            steps = long
    return {site: f"{long:,} become {short:,}" for site, (long, short) in reversed(found.items())}
