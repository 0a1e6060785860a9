"""Records what an optimizer step finds: gradients, tensors of its own state, a `loss.backward` without a call.

Also records tensors that the modules of an optimizer's parameters keep where `parameters()` does not look.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType, FunctionType, MethodType

import torch
from torch.compiler import is_compiling

from tensorlens.journal.rows import NONE, optional
from tensorlens.records.observations import MAX_NOTED, Step, Uncalled, Unregistered
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch
from tensorlens.tracer.patches.unregistered_parameters import unregistered
from tensorlens.tracer.recording.reached_names import ReachedNames, known_site
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.saved_tensors.retained_graphs import RetainedGraphs

MAX_DEPTH = 100  # modules around a parameter
HOOK = "tensorlens"  # the key of the lens's hooks in the tables of PyTorch


FoundParameter = tuple[torch.Tensor, int, int, torch.Tensor | None, int | None, int]
"""A parameter as a step finds it: (tensor, its id, its version counter, its gradient, id and version of that)"""


class OptimizerState:
    """The optimizers of one run, and the modules that their parameters are in."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._left = MAX_NOTED
        self._stepped: set[int] = set()  # parameters of the steps that are noted
        self._had_gradient: set[int] = set()  # those that a step found a gradient of
        self._named: dict[int, int] = {}  # tensor -> the site where its `backward` was named
        self._owners: dict[int, tuple[object, weakref.ref[torch.nn.Module]]] = {}
        """id of a parameter or module -> (its mark, the module that it is registered in)"""
        self._searched: dict[int, weakref.ref[torch.optim.Optimizer]] = {}  # by `id`: a `WeakSet` runs Python
        self.held = RetainedGraphs(recorder)
        self.reached = ReachedNames(recorder)

    # --- `.backward` is read -----------------------------------------------------------------------------------------

    def name_backward(self, tensor: torch.Tensor, frame: FrameType) -> None:
        """Notes that a line reads `tensor.backward`. `call_backward` removes the note, usually at the same line."""
        recorder = self._recorder
        sites = recorder.sites
        if sites.is_user(frame.f_code.co_filename):
            site, number = known_site(sites, frame), recorder.tensor_ids.find(tensor)
            if site == NONE or number is None:
                with torch._C.DisableTorchFunction():
                    self._named[recorder.tensor_ids.id_of(tensor)] = sites.site_of(frame)
            else:
                self._named[number] = site

    def call_backward(self, numbers: Iterable[int | None]) -> None:
        """Notes that `backward` of tensors, given by their ids, is called."""
        named = self._named
        if named:
            for number in numbers:
                if number in named:
                    del named[number]

    def forget(self) -> None:
        """Forgets which reads of `backward` had no call yet: it may have been made without a record."""
        self._named.clear()

    # --- steps ----------------------------------------------------------------------------------------------------

    def before_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Runs as a hook of PyTorch before each `step()`."""
        if is_compiling():  # `torch.compile` follows the program into hooks
            return
        recorder = self._recorder
        if not (recorder.off or recorder.is_paused or (recorder.quiet_threads and recorder.paused)):
            frame = sys._getframe(1)
            try:  # an `ErrorGuard` takes three calls
                self._before_step(optimizer, args, kwargs, frame)
            except Exception as error:
                recorder.internal_error("a step", error, frame)

    def _before_step(
        self,
        optimizer: torch.optim.Optimizer,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        frame: FrameType,
    ) -> None:
        """Notes the parameters of a step. A step with a closure computes its gradients later: see `after_step`."""
        if self._recorder.replicas is not None:
            self._recorder.replicas.before_step(optimizer, frame)
        if self._named:
            for number, site in self._named.items():
                self._recorder.rows.write_fact(Uncalled, optional(site), number)
            self._named.clear()
        with torch._C.DisableTorchFunction():
            self.held.round_ends(by_step=True)
            if not ((kwargs or len(args) > 1) and _has_closure(args, kwargs)):
                parameters, site = self._note_step(optimizer, frame)
                self._recorder.steps.begin(optimizer, parameters, frame, site)
                return
        if self._recorder.statistics is not None:
            self._recorder.statistics.expect_step(optimizer)

    def after_step(
        self, optimizer: torch.optim.Optimizer, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Runs as a hook of PyTorch after each `step()`."""
        if is_compiling():
            return
        recorder = self._recorder
        if not (recorder.off or recorder.is_paused or (recorder.quiet_threads and recorder.paused)):
            try:
                if recorder.replicas is not None:
                    recorder.replicas.after_step(optimizer)
                if (kwargs or len(args) > 1) and _has_closure(args, kwargs):
                    with torch._C.DisableTorchFunction():
                        self._note_step(optimizer, sys._getframe(1))
                elif recorder.statistics is not None:
                    recorder.statistics.step_ended(optimizer)
            except Exception as error:
                recorder.internal_error("a step", error, sys._getframe(1))
        if recorder.sampling is not None:
            recorder.sampling.step_ended(optimizer)

    def _note_step(self, optimizer: torch.optim.Optimizer, frame: FrameType) -> tuple[list[FoundParameter], int]:
        """Records what a step finds. Returns its parameters and its site, `NONE` if that was not read."""
        recorder = self._recorder
        in_c = recorder.tensor_ids.in_c
        find = self._found if in_c is None else in_c.found
        parameters: list[FoundParameter] = []
        is_new = self._is_new(optimizer)
        for group in optimizer.param_groups:
            if is_new:
                recorder.meet(group["params"])
            parameters += find(group["params"])
        site = self._write_step(optimizer, parameters, frame, is_new)
        if recorder.samples is not None:
            recorder.samples.step(optimizer)
        if recorder.statistics is not None:
            recorder.statistics.step(optimizer, parameters)
        return parameters, site

    def _found(self, parameters: Sequence[torch.Tensor]) -> Iterator[FoundParameter]:
        entry_of = self._recorder.tensor_ids.entry
        for parameter in parameters:
            _, number, counter, _ = entry_of(parameter)
            gradient = parameter.grad
            if gradient is None:
                yield parameter, number, counter, None, None, NONE
            else:
                yield parameter, number, counter, gradient, entry_of(gradient)[1], version_of(gradient)

    def _write_step(
        self, optimizer: torch.optim.Optimizer, parameters: list[FoundParameter], frame: FrameType, is_new: bool
    ) -> int:
        """Writes a `Step`, and returns its site. Once `MAX_NOTED` parameters are written, it does so only if one of its
        parameters is new or has its first gradient. Otherwise it returns `NONE`."""
        tensors, numbers, _, _, gradients, versions = zip(*parameters, strict=True) if parameters else ((),) * 6
        with_gradient = numbers
        if None in gradients:
            with_gradient = tuple(n for n, gradient in zip(numbers, gradients, strict=True) if gradient is not None)
        if self._left < len(parameters) and self._had_gradient.issuperset(with_gradient):
            if self._stepped.issuperset(numbers):
                return NONE
        self._stepped.update(numbers)
        self._had_gradient.update(with_gradient)
        self._left -= len(parameters)
        name, site = f"{type(optimizer).__name__}.step", self._recorder.sites.site_or_outside(frame)
        moved = _movable_without_gradient(optimizer, parameters)
        self._recorder.rows.write_fact(Step, site, name, numbers, gradients, versions, moved)
        if is_new:
            self._searched[id(optimizer)] = weakref.ref(optimizer)
            self._note_unregistered(tensors)
        return site

    def _is_new(self, optimizer: torch.optim.Optimizer) -> bool:
        """Returns whether no step of an optimizer is written yet."""
        known = self._searched.get(id(optimizer))
        return known is None or known() is not optimizer

    # --- modules --------------------------------------------------------------------------------------------------

    def registered(self, module: torch.nn.Module, _name: str, value: torch.Tensor | torch.nn.Module | None) -> None:
        """Runs as a hook of PyTorch when a parameter or module is registered in a module."""
        if value is not None and not is_compiling() and not self._recorder.paused:
            with ErrorGuard(self._recorder, "what a module holds"):
                self._owners[id(value)] = (self._mark(value), weakref.ref(module))

    def _mark(self, value: torch.Tensor | torch.nn.Module) -> object:
        """Returns a mark that a later object at the same address does not have.

        The mark of a tensor is its id. It is no weak reference, because `swap_tensors` refuses tensors that have any.
        """
        return self._recorder.tensor_ids.find(value) if isinstance(value, torch.Tensor) else weakref.ref(value)

    def _note_unregistered(self, parameters: Sequence[torch.Tensor]) -> None:
        """Writes an `Unregistered` for each tensor that the modules of `parameters` keep in plain attributes."""
        outermost: dict[int, torch.nn.Module] = {}
        for parameter in parameters:
            module = self._outermost_module(parameter)
            if module is not None:
                outermost[id(module)] = module
        seen: set[int] = set()
        for module in outermost.values():
            for path, tensor, owner in unregistered(module, seen):
                number = self._recorder.tensor_ids.id_of(tensor)
                self._recorder.rows.write_fact(Unregistered, type(owner).__name__, path, number)

    def _outermost_module(self, parameter: torch.Tensor) -> torch.nn.Module | None:
        outermost: torch.nn.Module | None = None
        value: torch.Tensor | torch.nn.Module = parameter
        for _ in range(MAX_DEPTH):
            mark, owner = self._owners.get(id(value), (None, None))
            if mark is None or owner is None or mark != self._mark(value) or (module := owner()) is None:
                return outermost
            outermost = value = module
        return outermost


def _movable_without_gradient(optimizer: torch.optim.Optimizer, parameters: list[FoundParameter]) -> tuple[int, ...]:
    """Finds the parameters that a step may change without a gradient: by weight decay or by tensors of its state."""
    moved: set[int] = set()
    for group in optimizer.param_groups:
        if group.get("weight_decay"):
            moved.update(map(id, group["params"]))
    for parameter, state in optimizer.state.items() if len(moved) < len(parameters) else ():
        if isinstance(state, dict):  # one may keep anything
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    moved.add(id(parameter))
                    break
    return tuple([found[1] for found in parameters if id(found[0]) in moved]) if moved else ()


def _has_closure(args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Returns whether `step(closure)` was called: the first of `args` is the optimizer itself."""
    return (len(args) > 1 and args[1] is not None) or kwargs.get("closure") is not None


class _BackwardAttribute:
    """`Tensor.backward` as a descriptor, which notes that it is read. No `observe` patch: it is not called."""

    def __init__(self, recorder: Recorder, function: FunctionType) -> None:
        self.__doc__ = function.__doc__
        self._recorder = recorder
        self._function = function
        self._sampling = recorder.sampling
        self._switching = None if self._sampling is None else self._sampling.switching(function)

    def __get__(self, tensor: torch.Tensor | None, owner: type | None = None) -> Function:
        if tensor is not None and is_compiling():  # `torch.compile` follows the program into this
            return MethodType(self._function, tensor)
        bound: Function = self._function.__get__(tensor, owner)  # it may be that of another recorder
        if tensor is None:  # PyTorch reads `Tensor.backward` at each call
            return bound
        if self._sampling is not None and self._sampling.is_resting:
            return bound
        recorder = self._recorder
        if not (recorder.is_paused or (recorder.quiet_threads and recorder.paused)):
            frame = sys._getframe(1)
            try:
                recorder.training.name_backward(tensor, frame)
            except Exception as error:
                recorder.internal_error("`backward`", error, frame)
        return bound if self._switching is None else MethodType(self._switching, tensor)


def _with_hook(method: str) -> Callable[[Recorder, OrderedDict[object, object]], object]:
    """Adds a hook to a table of PyTorch's global hooks. The program's own hooks stay in it. No `observe` patch."""

    def wrap(recorder: Recorder, original: OrderedDict[object, object]) -> object:
        table = OrderedDict(original)
        table[HOOK] = getattr(recorder.training, method)
        return table

    return wrap


_OPTIM = sys.modules[torch.optim.Optimizer.__module__]
_MODULE = sys.modules[torch.nn.Module.__module__]

PATCHES: tuple[Patch[Recorder], ...] = (
    Patch(torch.Tensor, "backward", _BackwardAttribute),
    Patch(_OPTIM, "_global_optimizer_pre_hooks", _with_hook("before_step")),
    Patch(_OPTIM, "_global_optimizer_post_hooks", _with_hook("after_step")),
    Patch(_MODULE, "_global_module_registration_hooks", _with_hook("registered")),
    Patch(_MODULE, "_global_parameter_registration_hooks", _with_hook("registered")),
)
