"""Finds the use of a value as the standard deviation of a normal distribution, whose variance a loss takes it for.

A variance is added to a mean too, as in the mean of a log-normal distribution, `mu + variance / 2`, and divides
differences, as in the derivative of a log-density, `(y - mu) / variance`. So the products and ratios count that are
those of a deviation only: a band around the mean, and a standardized difference that is squared and halved, compared
with a number, or whose own deviation is taken.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

VARIANCE_PLACE = 2  # of the arguments of `gaussian_nll_loss`
SAME = frozenset("clamp clip clamp_min detach getitem squeeze unsqueeze view reshape cpu".split())
_ROOTS = frozenset(("sqrt", "rsqrt", "square", "pow", "rpow"))
_PRODUCTS = frozenset(("mul", "rmul"))
_RATIOS = frozenset(("div", "truediv"))
_NOISE = frozenset(("randn", "randn_like"))
_NORMAL = ("Normal.", "LogNormal.")
_SUMS = frozenset("add radd iadd".split())
_DIFFERENCES = frozenset(("sub", "isub"))
_COMPARISONS = frozenset("le lt ge gt".split())
_OF_SCORES = _COMPARISONS | {"std", "var", "erf"}
_QUANTILES = (0.674, 0.842, 1.036, 1.282, 1.645, 1.96, 2.326, 2.576, 3.29)  # of the normal distribution
_MAX_CALLS = 12


@dataclass(slots=True)
class _Made:
    """The values that a line makes in each of its runs, as those that a loss takes, and what is the same as these."""

    call: Call
    place: int  # among the results of the call
    is_alone: bool  # the line has run only once for the loss, so its other runs are those of other passes
    weights: frozenset[int]  # the parameters that are nearest above the value
    numbers: set[int] = field(default_factory=set)

    def note(self, facts: TraceIndex, call: Call) -> bool:
        """Adds the results of a call that are such values. Returns whether there are any."""
        inputs, outputs = [access.tensor for access in call.inputs], [access.tensor for access in call.outputs]
        if op_name(call) in SAME and inputs[:1] and inputs[0] in self.numbers:
            self.numbers |= set(outputs)
            return True
        is_line = (call.site, call.op) == (self.call.site, self.call.op) and len(outputs) > self.place
        if call is self.call or (is_line and self.is_alone and _weights(facts, call) == self.weights):
            self.numbers.add(outputs[self.place])
            return True
        return False


@dataclass(slots=True)
class _Uses:
    """The uses of a value that have been met."""

    facts: TraceIndex
    values: set[int]
    means: set[int]
    products: dict[int, Call] = field(default_factory=dict)
    scores: dict[int, Call] = field(default_factory=dict)
    squares: dict[int, Call] = field(default_factory=dict)
    sides: dict[str, Call] = field(default_factory=dict)  # of a band whose width is not known

    def found(self, call: Call) -> Call | None:
        """Returns the use as a deviation that a call is, or completes."""
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        own, outputs = self.values & set(inputs), {access.tensor for access in call.outputs}
        if own and name in _PRODUCTS and _scales(self.facts, call, self.values):
            self.products |= dict.fromkeys(outputs, call)
        elif own and name in _RATIOS and self._is_score(call):
            self.scores |= dict.fromkeys(outputs, call)
        elif own:
            return call if name == "normal" and inputs[-1] in own else None
        product = next((self.products[number] for number in inputs if number in self.products), None)
        if product is not None and len(inputs) == 2:
            return self._band(call, product)
        return self._standardized(call)

    def _band(self, call: Call, product: Call) -> Call | None:
        """Returns a product that a call adds to the mean, takes from it or compares with a difference from it."""
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        other = next((number for number in inputs if self.products.get(number) is not product), inputs[0])
        if name in _COMPARISONS:
            return product if self._is_difference(other, call.index) else None
        if name not in _SUMS | _DIFFERENCES:
            return None
        if len(product.inputs) > 1:
            return product  # noise
        if other not in self.means or (name in _DIFFERENCES and inputs[0] != other):
            return None
        self.sides["below" if name in _DIFFERENCES else "above"] = product
        factor = _factor(self.facts, product)
        is_quantile = factor is not None and any(abs(factor - each) < 0.01 for each in _QUANTILES)
        return product if is_quantile or len(self.sides) == 2 else None

    def _standardized(self, call: Call) -> Call | None:
        """Returns a ratio that a call uses as a difference in units of the deviation."""
        name, (first, *others) = op_name(call), [*(access.tensor for access in call.inputs), -1]
        outputs = {access.tensor for access in call.outputs}
        score = self.scores.get(first)
        if score is not None and name in ("abs", "neg"):
            self.scores |= dict.fromkeys(outputs, score)
        elif score is not None and name in ("square", "pow"):
            self.squares |= dict.fromkeys(outputs, score)
        elif score is not None and name in _OF_SCORES and len(others) == 1:
            return score
        return self.squares.get(first) if name in _PRODUCTS | _RATIOS and len(others) == 1 else None

    def _is_score(self, call: Call) -> bool:
        """Returns whether a call divides a difference from the mean by one of the values."""
        inputs = [access.tensor for access in call.inputs]
        return len(inputs) == 2 and inputs[1] in self.values and self._is_difference(inputs[0], call.index)

    def _is_difference(self, number: int, before: int) -> bool:
        made = next(iter(self.facts.producers(number, before)), None)
        if made is not None and op_name(made) == "abs" and made.inputs:
            made = next(iter(self.facts.producers(made.inputs[0].tensor, made.index)), None)
        inputs = set[int]() if made is None else {access.tensor for access in made.inputs}
        return made is not None and op_name(made) in _DIFFERENCES and bool(inputs & self.means)


def used_as_deviation(facts: TraceIndex, loss: Call) -> Call | None:
    """Returns such a use of what a loss takes as the variance; None if anything takes a root or a square of it."""
    variance, mean = _made(facts, loss, VARIANCE_PLACE), _made(facts, loss, 0)
    if variance is None or mean is None:
        return None
    uses, found = _Uses(facts, variance.numbers, mean.numbers), None
    for call in facts.calls:
        inputs, name = [access.tensor for access in call.inputs], op_name(call)
        if facts.trace.sites[call.site].through.startswith(_NORMAL):
            if name == "broadcast_tensors" and inputs[1:2] and inputs[1] in variance.numbers:
                found = found or call
            continue
        is_mean = mean.note(facts, call)
        if variance.note(facts, call) or is_mean:
            continue
        own = variance.numbers & set(inputs)
        if own and (name in _ROOTS or (name in _PRODUCTS and len(own) == 1 and len(set(inputs)) < len(inputs))):
            return None
        found = found or uses.found(call)
    return found


def _made(facts: TraceIndex, loss: Call, place: int) -> _Made | None:
    """Returns the line that makes what a loss takes at a place of its arguments."""
    number, before = loss.inputs[place].tensor, loss.index
    made = facts.creator(number)
    while made is not None and made.inputs and made.index < before and _is_same(facts, made):
        number, before = made.inputs[0].tensor, made.index
        made = facts.creator(number)
    if made is None:
        return None
    since = max((each.index for each in facts.backwards if each.index < loss.index), default=-1)
    runs = [call for call in facts.calls_between(since + 1, loss.index) if call.site == made.site]
    is_alone = sum(call.op == made.op for call in runs) == 1
    return _Made(made, [access.tensor for access in made.outputs].index(number), is_alone, _weights(facts, made))


def _is_same(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call returns the values that it is given, or some of the rows."""
    node = facts.node_at(call.site)
    is_column = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    return op_name(call) in SAME and not (op_name(call) == "getitem" and is_column)


def _weights(facts: TraceIndex, call: Call) -> frozenset[int]:
    """Returns the parameters that the nearest call with some has, from a call back."""
    numbers = [access.tensor for access in call.inputs]
    above = [made for number in numbers for _, made in islice(ancestry(facts, number, call.index), _MAX_CALLS)]
    for each in (call, *above):
        found = {a.tensor for a in each.inputs if facts.tensor(a.tensor).type.endswith("Parameter")}
        if found:
            return frozenset(found)
    return frozenset()


def _scales(facts: TraceIndex, call: Call, values: set[int]) -> bool:
    """Returns whether a product has no other factor than a number or normal noise."""
    others = [access.tensor for access in call.inputs if access.tensor not in values]
    makers = [facts.creator(number) for number in others]
    return all(made is not None and op_name(made) in _NOISE for made in makers)


def _factor(facts: TraceIndex, product: Call) -> float | None:
    """Returns the number that the source writes as a factor, without its sign."""
    node, span = facts.node_at(product.site), facts.span(product.site)
    if not isinstance(node, ast.BinOp) or span is None:
        return None
    for side in (node.left, node.right):
        number = number_of(facts, span.file, side)
        number = written_number(facts, side) if number is None else number
        if number is not None:
            return abs(number)
    return None
