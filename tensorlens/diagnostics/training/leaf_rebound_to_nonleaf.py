"""Finds the cause of `leaf-rebound-to-nonleaf`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import leaves_above
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.timeline import Training, training_of
from tensorlens.diagnostics.shared.optimizers import born
from tensorlens.diagnostics.shared.wording import as_written, finding, fix
from tensorlens.records.model import Call
from tensorlens.records.observations import Unregistered
from tensorlens.records.report import Diagnostic


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    training = training_of(facts)
    for attribute in facts.trace.inspection.unregistered:
        state, made = (
            facts.state(attribute.tensor, attribute.index),
            next(iter(facts.producers(attribute.tensor, attribute.index)), None),
        )
        if state is None or state.is_leaf or made is None:
            continue
        leaf = next(
            (n for n in leaves_above(facts, attribute.tensor, attribute.index) if training.is_left_out(n)), None
        )
        first = next((c for c in facts.calls if c.op.startswith("optim.")), None)
        if leaf is not None and first is not None and made.index < first.index:
            yield _report(training, attribute, leaf, made)


def _report(training: Training, attribute: Unregistered, leaf: int, made: Call) -> Diagnostic:
    facts = training.facts
    filled = training.last_fill(leaf)
    code = as_written(facts, made)
    return finding(
        "leaf-rebound-to-nonleaf",
        "warning",
        f"`{attribute.name}` of `{attribute.module}` is never trained: {code} made a tensor that is no parameter",
        "a module can only register a leaf, and this is a result; its leaf was given to no optimizer",
        [
            facts.label("nonleaf_made_here", made.site, "makes a new tensor: not a leaf"),
            facts.label("leaf_made_here", born(facts, leaf), "the leaf that gets the gradient"),
            facts.label("needed_here", None if filled is None else filled.event.site, "gives the gradient to the leaf"),
        ],
        fixes=(
            fix(
                "convert first and make the parameter last: `torch.nn.Parameter(...)` around the converted values",
                place=facts.span(made.site),
            ),
        ),
        evidence={"attribute": attribute.name},
    )
