"""Names calls of `nn.functional.dropout()` without `training=`, which `eval()` does not reach."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import as_written
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_DROPOUTS = frozenset(
    f"nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
_SPREADS = frozenset(("stack", "std", "var", "std_mean", "var_mean"))
_TRAINING_PLACE = 2  # among the positional arguments


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds calls that run with gradients and, after the first of these, without, in a program that calls `eval()`.

    A program that computes a spread of results while gradients are off, as for Monte-Carlo dropout, is left alone.
    """
    facts = training.facts
    if facts.trace.inspection.switches or not _calls_eval(facts):
        return
    sites: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op in _DROPOUTS:
            sites[call.site].append(call)
        elif call.mode != "grad" and call.op.rpartition(".")[2] in _SPREADS:
            return
    for calls in sites.values():
        trained = [call for call in calls if call.mode == "grad"]
        evaluated = [call for call in calls if trained and call.mode != "grad" and call.index > trained[0].index]
        if evaluated and _has_no_mode(facts, calls[0]):
            times = "once" if len(evaluated) == 1 else f"{len(evaluated):,} times"
            text = f"{as_written(facts, calls[0])} has no `training=`, and runs in training mode also where gradients "
            yield stands_out(
                f"{text}are off, {times}: `eval()` of a module does not reach it",
                facts.label("observed_here", calls[0].site, "in training mode, whatever the module's mode is"),
            )


def _calls_eval(facts: TraceIndex) -> bool:
    """Returns whether a line of the program calls a method `eval()` of something, or `train(False)`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "eval" or (node.func.attr == "train" and bool(node.args or node.keywords)))
        for _, tree in facts.trees()
        for node in ast.walk(tree)
    )


def _has_no_mode(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the line calls the function itself, with a rate other than 0 and without a mode."""
    span, site = facts.span(call.site), facts.trace.sites[call.site]
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not facts.names.syntax.is_direct(site, call.op):
        return False
    if len(node.args) > _TRAINING_PLACE or any(isinstance(each, ast.Starred) for each in node.args):
        return False
    names = {each.arg: each.value for each in node.keywords}
    rate = names.get("p", node.args[1] if len(node.args) > 1 else None)
    return not {"training", None} & set(names) and not (isinstance(rate, ast.Constant) and rate.value == 0)
