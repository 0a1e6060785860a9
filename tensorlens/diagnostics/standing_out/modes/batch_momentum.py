"""Names batch norm whose running statistics are those of the last batch: a `momentum` as other libraries count it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.written_numbers import written_number
from tensorlens.diagnostics.shared.standing_out_text import stands_out
from tensorlens.diagnostics.shared.wording import code_at
from tensorlens.records.report import Label, StandingOut
from tensorlens.records.training_values import BatchMomentum

_LEAST = 0.9  # PyTorch's own is 0.1
_MIN_BATCHES = 3
_PLACE = 6  # of `momentum` among the arguments of `nn.functional.batch_norm()`
_PLACE_OF_LAYER = 2  # and among those of a layer


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds them if batches have updated the statistics with one momentum, and a run in eval mode has used them.

    A momentum of 1 takes over the last statistics: nobody writes it for an average.
    """
    facts, found = training.facts, dict[int, tuple[bool, BatchMomentum]]()
    for each in facts.trace.inspection.batch_momenta if not training.training.is_hidden else ():
        is_last = each.number == training.measured.number and each.updates >= _MIN_BATCHES
        is_found = is_last and each.uses and each.is_constant and _LEAST <= each.momentum < 1
        if is_found and _is_trained(training, each):
            made = _made(facts, each)
            site = each.site if made is None else made
            if site is not None:
                found.setdefault(site, (made is not None, each))
    for site, (is_layer, each) in found.items():
        made_here = facts.label("observed_here", site, "the layer is made here")
        yield stands_out(
            f"{code_at(facts, site, 'batch_norm')} makes its running statistics {each.momentum:.4g} times those of the "
            f"last batch, plus {1 - each.momentum:.4g} times what they were: in PyTorch, `momentum` is the weight of "
            "the new batch",
            made_here if is_layer else _given(facts, site),
            _setting(facts, site, is_layer, each.momentum),
        )


def _is_trained(training: MeasuredTraining, each: BatchMomentum) -> bool:
    """Returns whether a backward pass before a step is through the layer that updated the statistics, and not only runs
    that adapt a copy of it to other data."""
    facts = training.facts
    updates = {call.index for call in facts.calls if any(access.tensor == each.mean for access in call.inputs)}
    last = max((step.index for step in training.training.steps), default=0)
    passes = {each.site: each for each in facts.backwards if each.index < last and not each.failed}
    above = (
        made.index
        for backward in passes.values()
        for root in backward.roots
        for _, made in ancestry(facts, root.tensor, backward.index)
    )
    return any(index in updates for index in above)


def _made(facts: TraceIndex, each: BatchMomentum) -> int | None:
    """Returns the line that makes a layer of PyTorch with these statistics."""
    made = facts.creator(each.mean)
    through = "" if made is None else facts.trace.sites[made.site].through
    is_layer = through.endswith("Norm.__init__")
    return made.site if made is not None and is_layer and op_name(made) == "zeros" else None


def _given(facts: TraceIndex, site: int) -> Label | None:
    """Returns the place of the momentum in a call of the function, or of the call."""
    span, given = facts.span(site), _argument(facts, site, _PLACE)
    if span is not None and given is not None:
        return Label("observed_here", facts.span_of(given, span.file), "the momentum")
    return facts.label("observed_here", site, "updates its statistics")


def _argument(facts: TraceIndex, site: int, place: int) -> ast.expr | None:
    """Returns the momentum that a line gives."""
    node = facts.node_at(site)
    given = []
    if isinstance(node, ast.Call):
        given = [each.value for each in node.keywords if each.arg == "momentum"] + node.args[place : place + 1]
    return next(iter(given), None)


def _setting(facts: TraceIndex, site: int, is_layer: bool, momentum: float) -> Label | None:
    """Returns the only statement of the program that sets an attribute `momentum`, if it sets it to this number, and
    the line that makes the layer gives no other one."""
    given = _argument(facts, site, _PLACE_OF_LAYER if is_layer else _PLACE)
    if given is not None and getattr(given, "attr", None) != "momentum":
        return None
    found = [
        (node, file)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(getattr(each, "attr", None) == "momentum" for each in node.targets)
    ]
    if len(found) != 1 or written_number(facts, found[0][0].value) != momentum:
        return None
    return Label("observed_here", facts.span_of(*found[0]), "an attribute `momentum` is set to it")
