"""Finds values that are divided by their own sum over one value: the result is 1, whatever they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.gradients.sizes_of_one import is_of_setting
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call

_DIVISIONS = frozenset(("div", "truediv", "itruediv", "divide", "true_divide"))
_SUMS = frozenset(("sum", "nansum", "amax", "amin", "mean"))
_NORMS = frozenset(("norm", "vector_norm", "linalg_norm"))
_SOFTMAX = frozenset(("softmax", "softmin", "gumbel_softmax"))
_MIN_RUNS = 2


@dataclass(frozen=True, slots=True)
class ConstantRatio:
    """A line whose result is constant in each of its runs, although it is computed from a value with a graph."""

    call: Call  # the last
    value: int  # what it is computed from
    runs: int
    divisor: str  # the function that made it: "sum", "norm"; "": a softmax

    is_of_setting: bool  # the program may set how many elements the sum has

    @property
    def has_sign(self) -> bool:
        """Returns whether the result may be -1."""
        return self.divisor in _NORMS


def constant_ratios(facts: TraceIndex) -> Iterator[ConstantRatio]:
    """Yields these lines. The result has an element for each sum, and each sum has one element."""
    lines: dict[int, list[tuple[int, Call, Call | None]]] = defaultdict(list)
    odd: set[int] = set()
    for call in facts.calls:
        name = op_name(call)
        if call.nodes[1] <= call.nodes[0] or call.within or call.site in odd:
            continue
        if name in _DIVISIONS and len(call.inputs) == 2:
            divisor = _sum_of_one(facts, call)
            if divisor is None:
                odd.add(call.site)
            else:
                lines[call.site].append((call.inputs[0].tensor, call, divisor))
        elif name in _SOFTMAX and call.inputs:
            if _is_over_one(facts, call):
                lines[call.site].append((call.inputs[0].tensor, call, None))
            else:
                odd.add(call.site)
        elif name == "exp" and len(call.inputs) == 1 and (written := _written_softmax(facts, call)) is not None:
            value, is_of_one = written
            if is_of_one:
                lines[call.site].append((value, call, None))
            else:
                odd.add(call.site)
    for site, found in lines.items():
        if site not in odd and len(found) >= _MIN_RUNS:
            value, call, divisor = found[-1]
            name = "" if divisor is None else op_name(divisor)
            yield ConstantRatio(call, value, len(found), name, is_of_setting(facts, value, call.index))


def _sum_of_one(facts: TraceIndex, call: Call) -> Call | None:
    """Returns the call that summed the dividend over dimensions of size 1 to make the divisor.

    Both have a graph. A divisor without one, as that of a loss by its own size, leaves the dividend its gradient.
    """
    value, divisor = (access.tensor for access in call.inputs)
    made = next(iter(facts.producers(divisor, call.index)), None)
    if made is None or op_name(made) not in _SUMS | _NORMS or len(made.inputs) != 1:
        return None
    changes = (each.index for each in facts.producers(value, call.index) if each.index > made.index)
    is_its_own = made.inputs[0].tensor == value and _have_graphs(facts, call) and not any(changes)
    return made if is_its_own and facts.tensor(divisor).shape == facts.tensor(value).shape else None


def _written_softmax(facts: TraceIndex, call: Call) -> tuple[int, bool] | None:
    """Returns what a call computes the softmax of, as `exp(x - logsumexp(x))`, and whether each sum has one element."""
    less = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
    if less is None or op_name(less) != "sub" or len(less.inputs) != 2:
        return None
    value, divisor = (access.tensor for access in less.inputs)
    made = next(iter(facts.producers(divisor, less.index)), None)
    if made is None or op_name(made) != "logsumexp" or made.inputs[0].tensor != value:
        return None
    shapes = [facts.tensor(number).shape for number in (value, divisor)]
    return value, shapes[0] == shapes[1] and _have_graphs(facts, less)


def _have_graphs(facts: TraceIndex, call: Call) -> bool:
    """Returns whether each input of a call has a graph before it."""
    return all(facts.requires_grad(access.tensor, call.index - 1) for access in call.inputs)


def _is_over_one(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a softmax is over a dimension of size 1, which the line names as a number."""
    value, dimension = call.inputs[0].tensor, written_dimension(facts, call)
    has_graph = facts.requires_grad(value, call.index - 1)
    return has_graph and dimension is not None and facts.tensor(value).shape[dimension] == 1
