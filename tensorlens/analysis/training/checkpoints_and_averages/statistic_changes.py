"""Says whether changes update a statistic of a training, or begin it anew."""

from __future__ import annotations

from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_AVERAGING = frozenset("add radd iadd sub rsub isub mul rmul imul lerp maximum minimum".split())
REDUCTIONS = frozenset("mean sum var std var_mean std_mean amax amin max min norm quantile".split())
_RESETS = frozenset("zero fill zeros_like ones_like full_like new_zeros new_ones new_full".split())
_REPLACING = frozenset("copy setitem index_copy index_put scatter".split())
_COUNTS = frozenset(("bincount", "histc"))
_MAX_CALLS, _MAX_OBJECTS = 60, 32


def is_statistic(facts: TraceIndex, changes: list[Call]) -> bool:
    """Returns whether the last change makes a value of the one before and of a reduction of data, as an average does.

    The states of a recurrent layer, masks and caches of other sizes are none.
    """
    last = changes[-1]
    inputs = [access.tensor for access in last.inputs]  # each alone: a change in place has all those before as origins
    above = [made for number in inputs for _, made in islice(ancestry(facts, number, last.index), _MAX_CALLS)]
    above.append(last)
    for previous in reversed(changes[-_MAX_OBJECTS:-1]):  # that of another object comes between, perhaps
        before = {access.tensor for access in previous.outputs}
        if op_name(previous) in ("mul", "imul") and previous.writes:
            continue  # the first half of `mean.mul_(0.9).add_(...)`
        since = [made for made in above if made.index > previous.index]
        if any(op_name(made) in _AVERAGING for made in since if before & {access.tensor for access in made.inputs}):
            return any(op_name(made) in REDUCTIONS | _COUNTS for made in since)
    return False


def is_reset(facts: TraceIndex, every: list[Call]) -> bool:
    """Returns whether a line gives an attribute a constant, or replaces values in place by some that are not made of
    those before: a counter of one step, or of one epoch, goes on with nothing."""
    own = {access.tensor for each in every for access in each.outputs}
    own |= {write.tensor for each in every for write in each.writes}
    lines = {each.site: each for each in every}
    if any(op_name(each) in _RESETS or _replaces(facts, each, own) for each in lines.values()):
        return True
    resets = (call for call in facts.calls if call.writes and op_name(call) in _RESETS)
    return any(write.tensor in own for call in resets for write in call.writes)


def _replaces(facts: TraceIndex, change: Call, own: set[int]) -> bool:
    """Returns whether a call writes values into a tensor that do not descend from any of these tensors."""
    if op_name(change) not in _REPLACING or not change.writes:
        return False
    written = {write.tensor for write in change.writes}
    for number in {access.tensor for access in change.inputs} - written:
        above = (made for _, made in islice(ancestry(facts, number, change.index), _MAX_CALLS))
        if number in own or any(own & {access.tensor for access in made.inputs} for made in above):
            return False
    return True
