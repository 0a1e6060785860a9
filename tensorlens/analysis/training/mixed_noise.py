"""Finds mixtures of data with drawn noise, as a diffusion model is given them: `a * x + b * torch.randn_like(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

DRAWS = frozenset("randn randn_like normal".split())
_SUMS = frozenset("add radd iadd sub isub".split())
_PRODUCTS = frozenset("mul rmul imul div truediv".split())
SAME = frozenset(
    "view reshape squeeze unsqueeze getitem gather index_select expand expand_as to float double view_as take "
    "contiguous clone broadcast_to repeat".split()
)
_STATES = frozenset("manual_seed set_rng_state fork_rng set_state seed_all".split())
_MAX_CALLS, _MAX_ABOVE = 10, 400


@dataclass(frozen=True, slots=True)
class Mixture:
    """A sum of data and noise, each maybe multiplied by something."""

    call: Call
    data: int  # tensor
    noise: Call  # the draw
    data_factor: tuple[int, int] | None  # a tensor and the event that reads it
    noise_factor: tuple[int, int] | None


def mixtures_above(facts: TraceIndex, number: int, before: int) -> Iterator[Mixture]:
    """Yields the mixtures that a tensor is computed from."""
    for _, call in ancestry(facts, number, before, _MAX_ABOVE):
        mixed = mixture_of(facts, call)
        if mixed is not None:
            yield mixed


def mixture_of(facts: TraceIndex, call: Call) -> Mixture | None:
    """Returns the mixture that a call adds up."""
    if op_name(call) not in _SUMS or len(call.inputs) != 2:
        return None
    scaled = [_scaled(facts, access.tensor, call.index) for access in call.inputs]
    for (noise, noise_factor), (data, data_factor) in (scaled, scaled[::-1]):
        draw = drawn(facts, *noise)
        if draw is not None and drawn(facts, *data) is None and _is_shaped(facts, call, draw):
            return Mixture(call, data[0], draw, data_factor, noise_factor)
    return None


def drawn(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Returns the call that drew the values of a tensor from a normal distribution."""
    made = next(iter(facts.producers(number, before)), None)
    return made if made is not None and op_name(made) in DRAWS else None


def origin(facts: TraceIndex, number: int, before: int) -> tuple[int, Call | None]:
    """Returns the tensor whose entries a tensor has, and the call that made it."""
    made = next(iter(facts.producers(number, before)), None)
    for _ in range(_MAX_CALLS):
        if made is None or op_name(made) not in SAME or not made.inputs:
            break
        number, before = made.inputs[0].tensor, made.index
        made = next(iter(facts.producers(number, before)), None)
    return number, made


def repeats_draws(facts: TraceIndex) -> bool:
    """Returns whether a program may draw the same numbers again: it sets a state of random numbers several times, or
    gives draws a generator."""
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    states = [called_name(node) for node in calls if called_name(node) in _STATES]
    is_given = any(
        called_name(node) in DRAWS and any(keyword.arg == "generator" for keyword in node.keywords) for node in calls
    )
    return is_given or len(states) > 2 or any(each in ("set_rng_state", "set_state", "fork_rng") for each in states)


_Place = tuple[int, int]


def _scaled(facts: TraceIndex, number: int, before: int) -> tuple[_Place, _Place | None]:
    """Returns what a product multiplies, of the shape of the result, and its other factor."""
    made = next(iter(facts.producers(number, before)), None)
    if made is None or op_name(made) not in _PRODUCTS or not made.inputs:
        return (number, before), None
    inputs = [(access.tensor, made.index) for access in made.inputs]
    if len(inputs) == 1:
        return inputs[0], None
    first, second = inputs[:2]
    return (second, first) if drawn(facts, *second) or not _is_full(facts, first[0], number) else (first, second)


def _is_full(facts: TraceIndex, number: int, result: int) -> bool:
    return facts.tensor(number).shape == facts.tensor(result).shape


def _is_shaped(facts: TraceIndex, call: Call, draw: Call) -> bool:
    return bool(call.outputs and draw.outputs) and _is_full(facts, draw.outputs[0].tensor, call.outputs[0].tensor)
