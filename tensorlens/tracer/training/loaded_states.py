"""Counts the tensors that calls of `Module.load_state_dict` load, and those that `functional_call` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from tensorlens.records.training import LoadedState
from tensorlens.records.training_values import LoadedAverages
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.loaded_products import ProductsOfLoads

MOST = 1_000  # calls of a run that are counted
_ADDED = "num_batches_tracked"  # batch norm itself adds it to a dict that has none


@dataclass(slots=True)
class _Load:
    missing: list[str]  # the list that the call returns: each call has its own
    site: int | None
    module: str
    given: int
    names: int = 0
    loaded: int = 0
    is_call: bool = False
    renamed: int = 0
    example: tuple[str, str] = ("", "")  # a name of the module, and the one that the dict has for it


class LoadedStates:
    """Counts what the calls of one run load."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loads: list[_Load] = []
        self._called = set[int | None]()  # lines
        self.products = ProductsOfLoads(recorder)

    def note(
        self, part: torch.nn.Module, state: Mapping[str, object], prefix: str, call: tuple[list[str], int | None]
    ) -> None:
        """Notes that a module, or a part of it, looks for its tensors in a dict. `call`: its list of missing names, and
        its line."""
        missing, site = call
        load = self._loads[-1] if self._loads else None
        if load is None or load.missing is not missing:
            if prefix or len(self._loads) >= MOST:
                return
            load = _Load(missing, site, type(part).__name__, len(state))
            renamed = list(_renamed(part, state))
            load.renamed, load.example = len(renamed), renamed[0] if renamed else ("", "")
            self._loads.append(load)
        buffers = (name for name in part._buffers if name not in part._non_persistent_buffers_set)
        own = [
            name for name in (*part._parameters, *buffers) if name != _ADDED and getattr(part, name, None) is not None
        ]
        load.names += len(own)
        load.loaded += sum(f"{prefix}{name}" in state for name in own)

    def note_call(self, module: torch.nn.Module, given: Mapping[str, object], site: int | None) -> None:
        """Notes the first call of each line whose names are none of the module's."""
        if not given or site in self._called or len(self._loads) >= MOST or any(_has(module, name) for name in given):
            return
        self._called.add(site)
        names = sum(1 for _ in module.named_parameters()) + sum(1 for _ in module.named_buffers())
        self._loads.append(_Load([], site, type(module).__name__, len(given), names, is_call=True))

    def note_optimizer(self, optimizer: torch.optim.Optimizer, site: int | None) -> None:
        """Writes of which parameters an optimizer has loaded tensors with their shape, such as averages."""
        held = [each for options in optimizer.param_groups for each in options["params"][:MOST]][:MOST]
        loaded = [each for each in held if each in optimizer.state and _has_average(each, optimizer.state[each])]
        if loaded:
            numbers = tuple(map(self._recorder.tensor_ids.id_of, loaded))
            self._recorder.rows.write_fact(LoadedAverages, site, type(optimizer).__name__, numbers)

    def write(self, number: int) -> None:
        for load in self._loads:
            what = load.site, load.module, load.names, load.given, load.loaded, load.is_call, load.renamed, load.example
            self._recorder.rows.write_fact(LoadedState, number, *what)


def _has_average(parameter: torch.Tensor, state: object) -> bool:
    values = state.values() if isinstance(state, dict) else ()
    return any(isinstance(each, torch.Tensor) and each.shape == parameter.shape for each in values)


def _renamed(module: torch.nn.Module, state: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yields the names of tensors of a module that a dict does not have, each with the name that the dict has instead:
    that of a tensor of the same shape, with one prefix more or less."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    others = {name: value for name, value in state.items() if name not in own and isinstance(value, torch.Tensor)}
    missing = {name: tensor for name, tensor in own.items() if name not in state}
    if len(others) * len(missing) > MOST * MOST:
        return
    for name, tensor in missing.items():
        for other, value in others.items():
            is_same = f".{other}".endswith(f".{name}") or f".{name}".endswith(f".{other}")
            if is_same and value.shape == tensor.shape:
                yield name, other
                break


def _has(module: torch.nn.Module, name: str) -> bool:
    """Returns whether a dotted name is one of a module's tensors, or may be one."""
    *path, last = name.split(".")
    for part in path:
        inner = module._modules.get(part)
        if inner is None:
            return part in module.__dict__ or hasattr(type(module), part)
        module = inner
    own = (module._parameters, module._buffers, module._modules, module.__dict__)
    return any(last in each for each in own) or hasattr(type(module), last)
