"""Follows the replicas that the `DistributedDataParallel` wrappers of one rank hold."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from tensorlens.journal.rows import optional
from tensorlens.records.distributed import (
    BroadcastBuffer,
    ForwardInputs,
    HooksFired,
    ReplicaState,
    Wrapped,
    WrapperOption,
)
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.patches.replica_values import NOT_COMPUTED, value_numbers
from tensorlens.tracer.patches.wrapper_passes import WrapperPasses, is_noted
from tensorlens.tracer.recording.recorder import Recorder, version_of

_MOST_MOMENTS = 64
_MARK = "tensorlens: of a wrapper"
_BROADCAST = "DistributedDataParallel.forward"
_GIVEN = ("find_unused_parameters", "static_graph", "mixed_precision", "delay_all_reduce_named_params")
_UNLESS_OFF = ("broadcast_buffers", "forward_sync_buffers", "init_sync")
_Named = dict[str, torch.Tensor]


class Wrapper:
    """One wrapper of this rank. It keeps no tensor and no module alive."""

    def __init__(self, number: int, wrapper: torch.nn.Module, names: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
        self.number, self.names = number, names  # of its parameters, of its buffers
        self.numbers: frozenset[int] = frozenset()  # of its parameters
        self._wrapper = weakref.ref(wrapper)
        self.step = 0
        self.moments = ""
        self.sites: list[int | None] = []
        self.before: list[tuple[int, int]] | None = None  # (id, version) of each gradient when a pass begins
        self.overwritten: set[str] = set()  # buffers
        self.passes = WrapperPasses()

    def is_of(self, wrapper: object) -> bool:
        return self._wrapper() is wrapper

    def tensors(self) -> tuple[_Named, _Named]:
        """Returns the parameters and the buffers that were wrapped, by name; those that are gone are not there."""
        wrapper = self._wrapper()
        module = None if wrapper is None else vars(wrapper)["_modules"].get("module")
        if module is None:
            return {}, {}
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        return (
            {name: parameters[name] for name in self.names[0] if name in parameters},
            {name: buffers[name] for name in self.names[1] if name in buffers},
        )

    def gradients(self) -> list[tuple[int, int]]:
        """Returns (id, version) of the gradient of each parameter that is wrapped."""
        wrapper = self._wrapper()
        parameters = getattr(wrapper, "_module_parameters", None)
        found = list(self.tensors()[0].values()) if parameters is None else parameters
        return [(0, 0) if p.grad is None else (id(p.grad), version_of(p.grad)) for p in found]

    def note(self, moment: str, site: int | None) -> None:
        if len(self.moments) < _MOST_MOMENTS:
            self.moments += moment
            self.sites.append(site)


class Replicas:
    """The wrappers of one rank, and the steps on their parameters."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._wrappers: list[Wrapper] = []
        self._stepping: int | None = None  # an optimizer: its step may call that of another one
        self._passes = 0
        self.undo = ExitStack()  # closed when the run ends

    # --- wrappers ---------------------------------------------------------------------------------------------------

    def wrapping(self, wrapper: torch.nn.Module, options: Mapping[str, object], frame: FrameType) -> Wrapper | None:
        """Notes a module that is about to be wrapped. `options` are the arguments of the wrapper."""
        module, group, mesh = (options.get(name) for name in ("module", "process_group", "device_mesh"))
        if not isinstance(module, torch.nn.Module) or not dist.is_initialized() or mesh is not None:
            return None
        if not (group is None or isinstance(group, dist.ProcessGroup)):
            return None
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        with torch._C.DisableTorchFunction(), MutedDispatch():
            parameters = {name: p for name, p in module.named_parameters() if name not in ignored}
            buffers = {name: b for name, b in module.named_buffers() if name not in ignored}
            self._recorder.meet(list(parameters.values()))
            numbers = [self._recorder.tensor_ids.id_of(each) for each in (*parameters.values(), *buffers.values())]
            kinds = ["trained" if p.requires_grad else "frozen" for p in parameters.values()]
        made = Wrapper(len(self._wrappers), wrapper, (tuple(parameters), tuple(buffers)))
        made.numbers = frozenset(numbers[: len(parameters)])
        self._wrappers.append(made)
        ranks = tuple(dist.get_process_group_ranks(dist.group.WORLD if group is None else group))
        given = [name for name in _GIVEN if options.get(name)]
        given += [name for name in _UNLESS_OFF if options.get(name) in (None, True)]
        self._recorder.rows.write_fact(
            Wrapped,
            made.number,
            optional(self._recorder.sites.site_of(frame)),
            ranks,
            (*parameters, *buffers),
            tuple(numbers),
            (*kinds, *["buffer"] * len(buffers)),
            tuple(map(_form, (*parameters.values(), *buffers.values()))),
            tuple(given),
        )
        self._recorder.write_out()  # the process may be killed while it waits for the other ranks, here and below
        return made

    def has_wrapped(self, wrapper: Wrapper) -> None:
        """Marks the nodes that the wrapper has put its hooks on."""
        with torch._C.DisableTorchFunction(), MutedDispatch():
            parameters = wrapper.tensors()[0]
            nodes = {
                wrapper.names[0].index(name): _accumulating_node(parameter)
                for name, parameter in parameters.items()
                if parameter.requires_grad
            }
            for node in nodes.values():
                node.metadata[_MARK] = wrapper.number
            wrapper.passes.watch(nodes)

    def option(self, wrapper: torch.nn.Module, name: str) -> None:
        known = self._known(wrapper)
        if known is not None:
            self._recorder.rows.write_fact(WrapperOption, known.number, name)

    def _known(self, wrapper: object) -> Wrapper | None:
        return next((each for each in self._wrappers if each.is_of(wrapper)), None)

    # --- passes -----------------------------------------------------------------------------------------------------

    def passed(self, wrapper: torch.nn.Module, averages: bool, frame: FrameType) -> None:
        """Notes a forward pass through a wrapper. `averages`: the next backward pass averages gradients."""
        known = self._known(wrapper)
        if known is not None:
            known.note("F" if averages else "f", optional(self._recorder.sites.site_of(frame)))

    def pass_begins(self) -> None:
        """Notes the gradients before a backward pass. A pass may run inside another one."""
        self._passes += 1
        if self._passes == 1 and self._wrappers:
            self._recorder.write_out()
            with torch._C.DisableTorchFunction(), MutedDispatch():
                for wrapper in self._wrappers:
                    wrapper.before = wrapper.gradients()
                    wrapper.passes.begin()

    def pass_ends(self, frame: FrameType) -> None:
        self._passes -= 1
        if self._passes == 0:
            site = optional(self._recorder.sites.site_of(frame)) if self._wrappers else None
            with torch._C.DisableTorchFunction(), MutedDispatch():
                for wrapper in self._wrappers:
                    after = wrapper.gradients()
                    if wrapper.before is not None and after != wrapper.before:
                        wrapper.note("B", site)
                        self._note_fired(wrapper, site)

    def _note_fired(self, wrapper: Wrapper, site: int | None) -> None:
        found = wrapper.passes.end()
        if found is None:
            return
        number, missed = found
        parameters = wrapper.tensors()[0] if missed else {}
        known = {n: parameters.get(wrapper.names[0][n]) for n in missed}
        missed = tuple(n for n, p in known.items() if p is not None and _has_marked_node(p))
        self._recorder.rows.write_fact(HooksFired, wrapper.number, number, site, missed)

    def inputs(self, wrapper: torch.nn.Module, values: tuple[object, ...], frame: FrameType) -> None:
        """Notes the inputs of a forward pass through a wrapper."""
        known = self._known(wrapper)
        if known is not None:
            with torch._C.DisableTorchFunction(), MutedDispatch():
                number, found = known.passes.inputs(values)
            if is_noted(number):
                site = optional(self._recorder.sites.site_of(frame))
                self._recorder.rows.write_fact(ForwardInputs, known.number, number, site, found)

    # --- buffers ----------------------------------------------------------------------------------------------------

    def buffers_of(self, wrapper: torch.nn.Module) -> dict[str, tuple[int, int]]:
        """Returns (number, version) of each of a wrapper's buffers."""
        known = self._known(wrapper)
        if known is None:
            return {}
        with torch._C.DisableTorchFunction(), MutedDispatch():
            return _numbered(known.tensors()[1])

    def broadcast(self, wrapper: torch.nn.Module, before: dict[str, tuple[int, int]], frame: FrameType) -> None:
        """Notes the buffers that a broadcast has changed. In newer releases of PyTorch it moves no version counter."""
        known = self._known(wrapper)
        if known is None or not before:
            return
        with torch._C.DisableTorchFunction(), MutedDispatch():
            buffers = known.tensors()[1]
            for name, (after, version) in _numbered(buffers).items():
                was, version_before = before.get(name, (NOT_COMPUTED, 0))
                if NOT_COMPUTED in (was, after) or was == after:
                    continue
                buffer = buffers[name]
                if version == version_before:
                    self._recorder.saved_tensors.note_unversioned_write(buffer, _BROADCAST, frame)
                if name not in known.overwritten:
                    known.overwritten.add(name)
                    site, number = self._recorder.sites.site_of(frame), self._recorder.tensor_ids.id_of(buffer)
                    self._recorder.rows.write_fact(BroadcastBuffer, known.number, name, number, optional(site))

    # --- steps ------------------------------------------------------------------------------------------------------

    def before_step(self, optimizer: torch.optim.Optimizer, frame: FrameType) -> None:
        """Notes the replicas that an optimizer is about to change."""
        if self._stepping not in (None, id(optimizer)) or not self._wrappers:
            return
        self._stepping = id(optimizer)
        with torch._C.DisableTorchFunction(), MutedDispatch():
            find = self._recorder.tensor_ids.find
            stepped = {find(p) for group in optimizer.param_groups for p in group["params"]}
            for wrapper in self._wrappers:
                if wrapper.numbers & stepped:
                    wrapper.step += 1
                    self._note_state(wrapper, wrapper.step, optional(self._recorder.sites.site_of(frame)))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self._stepping == id(optimizer):
            self._stepping = None

    def end(self) -> None:
        """Notes the replicas when the run ends."""
        with ErrorGuard(self._recorder, "the replicas"), torch._C.DisableTorchFunction(), MutedDispatch():
            for wrapper in self._wrappers:
                if wrapper.step:
                    self._note_state(wrapper, -wrapper.step, None)
        self.undo.close()

    def _note_state(self, wrapper: Wrapper, step: int, site: int | None) -> None:
        moments, sites = wrapper.moments, tuple(wrapper.sites)
        wrapper.moments, wrapper.sites = "", []
        if step > 0 and not is_noted(step):
            return
        parameters, buffers = wrapper.tensors()
        tensors = [parameters.get(name) for name in wrapper.names[0]] + [buffers.get(n) for n in wrapper.names[1]]
        gradients = [None if p is None else p.grad for p in tensors[: len(wrapper.names[0])]]
        unhooked = tuple(
            self._recorder.tensor_ids.id_of(p)
            for p in parameters.values()
            if step > 0 and p.requires_grad and p.is_leaf and not _has_marked_node(p)
        )
        values = value_numbers(tensors), value_numbers(gradients)
        self._recorder.rows.write_fact(ReplicaState, wrapper.number, step, site, *values, moments, sites, unhooked)


def _numbered(buffers: _Named) -> dict[str, tuple[int, int]]:
    numbers = zip(buffers.items(), value_numbers(buffers.values()), strict=True)
    return {name: (number, version_of(buffer)) for (name, buffer), number in numbers}


def _form(tensor: torch.Tensor) -> str:
    if torch.nn.parameter.is_lazy(tensor):
        return "uninitialized"
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _has_marked_node(parameter: torch.Tensor) -> bool:
    """Returns whether the node that accumulates a parameter's gradient is the one that the wrapper put its hook on."""
    return parameter.requires_grad and parameter.is_leaf and _MARK in _accumulating_node(parameter).metadata


def _accumulating_node(leaf: torch.Tensor) -> Any:
    """Returns the node that accumulates the gradient of a leaf. Its marks live as long as the node."""
    enabled = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    try:
        node: Any = leaf.view_as(leaf).grad_fn
        return node.next_functions[0][0]
    finally:
        torch._C._set_grad_enabled(enabled)
