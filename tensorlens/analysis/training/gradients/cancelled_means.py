"""Finds log-probabilities that take off what `rsample()` has added: `log_prob(loc + scale * noise)` has `x - loc`.

The gradient of the location is zero then, whatever the log-probability is multiplied by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.records.model import Backward, Call

_SAME = frozenset("expand expand_as view reshape".split())
_ADDING, _TAKING = frozenset(("add", "radd")), frozenset(("sub", "rsub"))


def cancelled_means(facts: TraceIndex, backward: Backward, leaf: int) -> Iterator[tuple[Call, Call]]:
    """Yields the calls of one pass that subtract a location which is computed from a leaf, each with the call that has
    added it before."""
    recorded = list(recorded_above(facts, backward))
    users = Counter(access.tensor for call in recorded for access in call.inputs)
    indices = {call.index for call in recorded}
    for call in recorded:
        if op_name(call) in _TAKING and len(call.inputs) == 2 and _is_whole(facts, call):
            value, location = (_origin(facts, access.tensor, call.index) for access in call.inputs)
            made = next(iter(facts.producers(value, call.index)), None)
            if made is None or made.index not in indices or users[value] != 1 or not _is_whole(facts, made):
                continue  # another use of the sum gives the location a gradient
            if op_name(made) in _ADDING and len(made.inputs) == 2:
                given = [_origin(facts, access.tensor, made.index) for access in made.inputs]
                if location in given and leaf in graph_leaves(facts, location, call.index):
                    yield call, made


def _is_whole(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds or subtracts all of its second argument: it has no `alpha`."""
    span = facts.span(call.site)
    return span is not None and "alpha" not in facts.names.syntax.text(span, 1_000)


def _origin(facts: TraceIndex, number: int, before: int) -> int:
    made = next(iter(facts.producers(number, before)), None)
    while made is not None and op_name(made) in _SAME and len(made.inputs) == 1:
        number, before = made.inputs[0].tensor, made.index
        made = next(iter(facts.producers(number, before)), None)
    return number
