"""Finds state of an optimizer that is no copy: that is a gradient, or that a loaded state dict shares with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from tensorlens.records.training_values import SharedState
from tensorlens.tracer.isolation.readable import is_measurable
from tensorlens.tracer.isolation.torch_originals import numel
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.state_orders import StateOrders

MOST = 100  # loads of a run that are kept
MOST_DICTS = 10_000  # state dicts of a run that are noted


class SharedStates:
    """Follows the optimizers of one run."""

    def __init__(self, recorder: Recorder, count_of: Callable[[torch.optim.Optimizer], tuple[int, int, int]]) -> None:
        self._recorder = recorder
        self._count_of = count_of  # (number of an optimizer, its steps, steps of all optimizers)
        self._gradients: dict[tuple[int, str], tuple[int, ...]] = {}  # by optimizer and name: the parameters
        self._loads: dict[tuple[int, int | None], tuple[int, ...]] = {}  # by optimizer and line
        self._made: dict[tuple[int, int], tuple[int, int]] = {}  # by state dict: (optimizer, its steps)
        self._orders = StateOrders(recorder, count_of)

    def step_begins(self, optimizer: torch.optim.Optimizer, is_examined: bool) -> None:
        """Looks at the state of an optimizer before a step: after a load, or if it is none of PyTorch's."""
        self._orders.step_begins(optimizer)
        if not is_examined or type(optimizer).__module__.startswith("torch."):
            return
        found: dict[str, list[int]] = {}
        for parameter in _parameters(optimizer):
            gradient = parameter.grad
            for name, value in _state(optimizer.state.get(parameter)) if gradient is not None else ():
                if gradient is not None and _is_one(value, gradient):
                    found.setdefault(name, []).append(self._recorder.tensor_ids.id_of(parameter))
        for name, parameters in found.items():
            self._gradients[self._count_of(optimizer)[0], name] = tuple(parameters)

    def made(self, optimizer: torch.optim.Optimizer, result: object) -> None:
        """Notes a state dict. A program that loads it still has it, so that no later one has the same ids."""
        self._orders.made(optimizer)
        made = _ids(result)
        if made is not None and (len(self._made) < MOST_DICTS or made in self._made):
            self._made[made] = self._count_of(optimizer)[:2]

    def loading(self, optimizer: torch.optim.Optimizer, given: object, site: int | None) -> None:
        """Notes a state dict, before it is loaded, that holds the tensors which later steps have changed."""
        self._orders.loading(optimizer, site)
        states = given.get("state") if isinstance(given, Mapping) else None
        number, steps, _ = self._count_of(optimizer)
        ids = _ids(given)
        made = None if ids is None else self._made.get(ids)
        if made is None or made[0] != number or made[1] == steps:
            return  # `opt.load_state_dict(opt.state_dict())` gives the state the type of the parameters
        held = list(states.values()) if isinstance(states, Mapping) else []
        own = [(parameter, optimizer.state.get(parameter)) for parameter in _parameters(optimizer)]
        shared = [
            self._recorder.tensor_ids.id_of(parameter)
            for (parameter, state), other in zip(own, held, strict=False)
            if any(numel(value) > 1 and value is dict(_state(other)).get(name) for name, value in _state(state))
        ]
        if shared and len(self._loads) < MOST:
            self._loads[number, site] = tuple(shared)

    def write(self, number: int) -> None:
        """Writes the facts so far."""
        rows = self._recorder.rows
        for (optimizer, name), parameters in self._gradients.items():
            rows.write_fact(SharedState, number, optimizer, "gradient", name, None, parameters)
        for (optimizer, site), parameters in self._loads.items():
            rows.write_fact(SharedState, number, optimizer, "loaded", "", site, parameters)


def _ids(state_dict: object) -> tuple[int, int] | None:
    """Returns the ids of a state dict and of what it holds: a dict that the program makes itself may have one of them
    again, of an earlier state dict that is gone."""
    return (id(state_dict), id(state_dict.get("state"))) if isinstance(state_dict, Mapping) else None


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _state(state: object) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the tensors of the state of a parameter, with their names."""
    for name, value in state.items() if isinstance(state, Mapping) else ():
        if isinstance(name, str) and isinstance(value, torch.Tensor):
            yield name, value


def _is_one(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two tensors begin at the same place in memory."""
    if one is other:
        return True
    return is_measurable(one) and is_measurable(other) and numel(one) > 0 and one.data_ptr() == other.data_ptr()
