"""The bookkeeping of training that no torch call shows: what an optimizer's step found, a `backward` that was named and
not called, and what a module uses without `parameters()` knowing of it.

`PATCHES` goes with the table in `patches.py`.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tensorlens.journal.rows import NONE, NOTICED
from tensorlens.tracer.isolation.guard import ErrorGuard, caller
from tensorlens.tracer.recording.reached_names import ReachedNames
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.saved_tensors.retained_graphs import RetainedGraphs

Wrap = Callable[[Recorder, Any], Any]
Found = tuple[torch.Tensor, int, int, torch.Tensor | None, int | None, int]
"""A parameter, its id and its counter; its gradient, the id and the version of that."""
MAX_NOTED = 20_000  # parameters, over all steps; later ones are noted where a parameter has its first gradient
MAX_ITEMS = 100
_TABLES = ("_parameters", "_buffers", "_modules")


class OptimizerState:
    """What is noted of one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._left = MAX_NOTED
        self._fed: set[int] = set()  # parameters that a step found a gradient of
        self._named: dict[int, int] = {}  # tensor -> the site where its `backward` was named
        self._owners: dict[int, tuple[Any, Any]] = {}  # id of a parameter or module -> weak: (itself, what holds it)
        self._looked: weakref.WeakSet[Any] = weakref.WeakSet()
        self.held = RetainedGraphs(recorder)
        self.reached = ReachedNames(recorder)

    # --- backward, named ------------------------------------------------------------------------------------------

    def name_backward(self, tensor: torch.Tensor, frame: Any) -> None:
        if self._recorder.sites.is_user(frame.f_code.co_filename):
            with torch._C.DisableTorchFunction():
                self._named[self._recorder.tensor_ids.id_of(tensor)] = self._recorder.sites.site_of(frame)

    def call_backward(self, tensor: torch.Tensor) -> None:
        number = self._recorder.tensor_ids.find(tensor)
        if number is not None:
            self._named.pop(number, None)

    # --- steps ----------------------------------------------------------------------------------------------------

    def before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._recorder.paused:
            with ErrorGuard(self._recorder, "a step", sys._getframe(1)):
                self._before_step(optimizer, args, kwargs, sys._getframe(1))

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any, frame: Any) -> None:
        """An optimizer is about to step; one that is given a closure finds its gradients later."""
        for number, site in self._named.items():
            self._recorder.rows.append((NOTICED, "uncalled", site, number))
        self._named.clear()
        with torch._C.DisableTorchFunction():
            self.held.round_ends(by_step=True)
        if not _closure(args, kwargs):
            self._recorder.steps.begin(optimizer, self._note_step(optimizer, frame), frame)

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._recorder.paused:
            with ErrorGuard(self._recorder, "a step", sys._getframe(1)):
                if _closure(args, kwargs):
                    self._note_step(optimizer, sys._getframe(1))

    def _note_step(self, optimizer: Any, frame: Any) -> list[Found]:
        entry_of = self._recorder.tensor_ids.entry
        found: list[Found] = []
        with torch._C.DisableTorchFunction():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    _, number, counter, _ = entry_of(parameter)
                    gradient = parameter.grad
                    if gradient is None:
                        found.append((parameter, number, counter, None, None, NONE))
                    else:
                        given = entry_of(gradient)[1], version_of(gradient)
                        found.append((parameter, number, counter, gradient, *given))
            self._write_step(optimizer, found, frame)
        return found

    def _write_step(self, optimizer: Any, found: list[Found], frame: Any) -> None:
        fed = {number for _, number, _, gradient, _, _ in found if gradient is not None}
        if self._left < len(found) and fed <= self._fed:
            return
        self._fed |= fed
        self._left -= len(found)
        parameters, numbers, _, _, gradients, versions = zip(*found, strict=True) if found else ((),) * 6
        name, site = f"{type(optimizer).__name__}.step", self._recorder.sites.site_or_outside(frame)
        row = (NOTICED, "steps", site, name, numbers, gradients, versions, _carried(optimizer, found))
        self._recorder.rows.append(row)
        if optimizer not in self._looked:
            self._looked.add(optimizer)
            self._look_around(parameters)

    # --- modules --------------------------------------------------------------------------------------------------

    def registered(self, module: Any, _name: str, value: Any) -> None:
        if value is not None and not self._recorder.paused:
            with ErrorGuard(self._recorder, "what a module holds"):
                self._owners[id(value)] = (self._mark(value), weakref.ref(module))

    def _mark(self, value: Any) -> Any:
        """What a later object at the same address doesn't have. No weak reference to a parameter may be left:
        `swap_tensors` refuses tensors that have any."""
        return self._recorder.tensor_ids.find(value) if isinstance(value, torch.Tensor) else weakref.ref(value)

    def _look_around(self, parameters: tuple[Any, ...]) -> None:
        """Note what the modules that hold `parameters` keep in plain attributes."""
        tops: dict[int, Any] = {}
        for parameter in parameters:
            top = self._top(parameter)
            if top is not None:
                tops[id(top)] = top
        seen: set[int] = set()
        for top in tops.values():
            for path, tensor, module in _plain_tensors(top, "", seen):
                number = self._recorder.tensor_ids.id_of(tensor)
                self._recorder.rows.append((NOTICED, "unregistered", type(module).__name__, path, number))

    def _top(self, value: Any) -> Any:
        """The outermost module that a parameter is registered in."""
        top = None
        for _ in range(MAX_ITEMS):
            mark, holder = self._owners.get(id(value), (None, None))
            if mark is None or mark != self._mark(value) or holder() is None:
                return top
            top = value = holder()
        return top


def _plain_tensors(module: Any, path: str, seen: set[int]) -> Iterator[tuple[str, torch.Tensor, Any]]:
    """(name, tensor that requires grad, module) of all that is reached through plain attributes of the modules."""
    if id(module) in seen:
        return
    seen.add(id(module))
    state = vars(module)
    for name, value in list(state.items()):
        if name not in _TABLES:
            for inner, tensor in _held(f"{path}{name}", value, 3):
                yield inner, tensor, module
    for name, child in list((state.get("_modules") or {}).items()):
        if child is not None:
            yield from _plain_tensors(child, f"{path}{name}.", seen)


def _held(path: str, value: Any, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield path, value
    elif not depth:
        return
    elif isinstance(value, torch.nn.Module):
        for table in ("_parameters", "_modules"):
            for name, item in list((vars(value).get(table) or {}).items())[:MAX_ITEMS]:
                yield from _held(f"{path}.{name}", item, depth - 1)
    elif type(value) in (list, tuple):
        for position, item in enumerate(value[:MAX_ITEMS]):
            yield from _held(f"{path}[{position}]", item, depth - 1)
    elif type(value) is dict:
        for key, item in list(value.items())[:MAX_ITEMS]:
            if type(key) in (str, int):
                yield from _held(f"{path}[{key!r}]", item, depth - 1)


def _carried(optimizer: Any, found: list[Found]) -> tuple[int, ...]:
    """The parameters that an optimizer keeps tensors of its own for, or decays."""
    groups = optimizer.param_groups
    states = [(p, state) for p, state in optimizer.state.items() if isinstance(state, dict)]  # one may keep anything
    moved = {id(p) for group in groups if group.get("weight_decay") for p in group["params"]}
    moved |= {id(p) for p, state in states if any(isinstance(value, torch.Tensor) for value in state.values())}
    return tuple(number for parameter, number, *_ in found if id(parameter) in moved) if moved else ()


def _closure(args: Any, kwargs: Any) -> bool:
    """Whether `step(closure)` was called: the optimizer itself is the first of `args`."""
    return any(value is not None for value in (*args[1:2], kwargs.get("closure")))


class _NamedBackward:
    """`Tensor.backward` as an attribute that tells when it is read."""

    def __init__(self, recorder: Recorder, function: Any) -> None:
        self.__doc__ = function.__doc__
        self._recorder = recorder
        self._function = function

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self._function.__get__(None, owner)
        if not self._recorder.paused:
            frame = sys._getframe(1)
            with ErrorGuard(self._recorder, "`backward`", frame):
                self._recorder.training.name_backward(tensor, frame)
        return self._function.__get__(tensor, owner)


def _backward(recorder: Recorder, original: Any) -> Any:
    return _NamedBackward(recorder, original)


def _with_hook(method: str) -> Wrap:
    """A table of torch's global hooks with one more: its entries stay, and go on being called."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        table = OrderedDict(original)
        table["tensorlens"] = getattr(recorder.training, method)
        return table

    return wrap


def _add_param_group(recorder: Recorder, original: Any) -> Any:
    """Parameters that an optimizer is given later, recorded like those that it was made with."""

    @functools.wraps(original)
    def add_param_group(self: Any, param_group: Any) -> None:
        original(self, param_group)
        frame = caller()
        if recorder.paused or frame.f_code.co_qualname == "Optimizer.__init__":
            return
        given = list(self.param_groups[-1]["params"])
        called = (original, f"optim.{type(self).__name__}.add_param_group", frame, False, True, ())
        sequence = torch._C._autograd._get_sequence_nr()
        with torch._C.DisableTorchFunction():
            recorder.finish(called, None, given, recorder.accesses(given), sequence)

    return add_param_group


_optim: Any = sys.modules[torch.optim.Optimizer.__module__]
_module: Any = sys.modules[torch.nn.Module.__module__]

PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch.Tensor, "backward", _backward),
    (torch.optim.Optimizer, "add_param_group", _add_param_group),
    (_optim, "_global_optimizer_pre_hooks", _with_hook("before_step")),
    (_optim, "_global_optimizer_post_hooks", _with_hook("after_step")),
    (_module, "_global_module_registration_hooks", _with_hook("registered")),
    (_module, "_global_parameter_registration_hooks", _with_hook("registered")),
)
