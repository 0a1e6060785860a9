"""Finds the cause of `data-swap-leaves-stale-gradient-shape`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.lineage import backward_reaches
from tensorlens.analysis.naming.names import shape_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, named
from tensorlens.records.model import Backward, Call
from tensorlens.records.report import Diagnostic

CODE = "data-swap-leaves-stale-gradient-shape"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for call in facts.calls:
        if call.op != "Tensor.data.__set__" or len(call.inputs) < 2:
            continue
        leaf, data = (access.tensor for access in call.inputs[:2])
        if facts.tensor(leaf).shape == facts.tensor(data).shape:
            continue
        found = _filled(facts, call, leaf)
        if found is not None:
            yield _report(facts, call, *found)


def _filled(facts: TraceIndex, call: Call, leaf: int) -> tuple[Call, Backward] | None:
    """Finds a use of the leaf before the change, and the later backward pass through it that gave the leaf a
    gradient."""
    earlier = (use for use in facts.calls if use.index < call.index and any(not s.is_leaf for s in use.states))
    uses = [use for use in earlier if any(access.tensor == leaf for access in use.inputs)]
    swaps = [each.index for each in facts.calls if each.op == call.op and each.inputs and each.inputs[0].tensor == leaf]
    for backward in facts.backwards:
        if any(call.index < swap < backward.index for swap in swaps):
            return None  # a later one may have brought the shape back, as sharded training does in each pass
        if backward.started > call.index and any(g.tensor == leaf and g.after for g in backward.gradients):
            through = next((use for use in reversed(uses) if backward_reaches(facts, backward, use)), None)
            if through is not None:
                return through, backward
    return None


def _report(facts: TraceIndex, call: Call, use: Call, backward: Backward) -> Diagnostic:
    leaf, data = (access.tensor for access in call.inputs[:2])
    name = named(facts, leaf, call.index)
    old, new = shape_text(facts.tensor(leaf)), shape_text(facts.tensor(data))
    return finding(
        CODE,
        "warning",
        f"{name} has the shape {new} and its gradient the shape {old}",
        f"the graph was recorded while {name} had the shape {old}, and its gradient has the shape from then",
        [
            facts.label("modified_here", call.site, f"its shape becomes {new}"),
            facts.label("graph_built_here", use.site, f"recorded with the shape {old}"),
            facts.label("needed_here", backward.site, f"stores a gradient of shape {old}"),
        ],
        fixes=(
            fix(
                "change the shape below the backward pass, and make a new parameter for it", place=facts.span(call.site)
            ),
        ),
        evidence={"shape": new, "gradient": old},
    )
