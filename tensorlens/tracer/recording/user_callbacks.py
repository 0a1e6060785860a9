"""Where the user hands functions to autograd, and what happens when autograd calls them back.

A function that is called from C++ can't be watched from the side, so a `Watched` stands in its place where only the
engine looks: in the storage of a hook dictionary (whose Python methods give the function itself), in the list that
a module's hook node keeps, on the stack of saved-tensor hooks. Nothing here keeps a tensor, module or class alive.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any

import torch

from tensorlens.journal.rows import CALLBACK, NONE
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.guard import guarded
from tensorlens.tracer.recording.tensor_ids import TensorIds
from tensorlens.tracer.recording.user_functions import Function, UserFunctions, Watch

RETURNED, RAISED, REFUSED = 0, 1, 2  # REFUSED: it could not be called as it was
METHODS = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")
MAX_REGISTRATIONS = 20_000
QUIET_KINDS = ("pack hook", "unpack hook")  # run once for every saved tensor: told only where something is amiss


class UserCallbacks:
    """The functions that autograd was given, and their runs: CALLBACK rows of a recorder."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._rows: list[Any] = recorder.rows
        self.sites: Sites = recorder.sites
        self._tensor_ids: TensorIds = recorder.tensor_ids
        self.functions = UserFunctions(self._rows, self.sites)
        self._registrations: dict[tuple[int, str, int, int], int] = {}
        self._latest: dict[int, int] = {}  # function -> its latest registration
        self._modules: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._made: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._applied: weakref.WeakKeyDictionary[type, set[int]] = weakref.WeakKeyDictionary()
        self.by_handle: dict[int, int] = {}  # a hook handle's id -> registration
        self.node = NONE  # sequence number of the custom function's node whose backward runs
        self._over = False

    @property
    def asleep(self) -> bool:
        """Whether nothing is to be recorded now, or ever again."""
        return self._over or self._recorder.paused

    def end(self) -> None:
        """What watches a hook from now on only calls it."""
        self._over = True

    # --- registering --------------------------------------------------------------------------------------------

    def register(self, kind: str, function: int, site: int, target: int = NONE) -> int:
        """The number of a registration, made known where it is new."""
        if len(self._registrations) > MAX_REGISTRATIONS:
            target = NONE
        key = (function, kind, site, target)
        number = self._registrations.get(key)
        if number is None:
            number = self._registrations[key] = len(self._registrations)
            self._rows.append((CALLBACK, "registrations", number, function, kind, site, target))
        if kind != "passed on":
            self._latest[function] = number
        return number

    def add(self, kind: str, called: Any, frame: FrameType | None, target: int = NONE) -> tuple[int, Function] | None:
        """Register a callable that was given to torch by the code of `frame`; None for torch's own business."""
        function = self.functions.find(called)
        direct = frame is not None and self.sites.is_user(frame.f_code.co_filename)
        if function is None:
            if not direct:
                return None
            function = self.functions.of_library(called)
        elif not direct and function.number in self._latest:  # torch passes on what it was given before
            known = self._latest[function.number]
            self.register("passed on", function.number, self.sites.site_of(frame), target)
            return known, function
        site = self.sites.site_of(frame)
        return None if site == NONE else (self.register(kind, function.number, site, target), function)

    def watch(self, kind: str, called: Any, frame: FrameType | None, target: int = NONE) -> Any:
        """`called`, or what stands in its place from now on."""
        added = self.add(kind, called, frame, target)
        return called if added is None else Watched(called, self, kind, added)

    def module(self, module: Any) -> int:
        """A number for a module, never reused."""
        known = self._modules.get(id(module))
        if known is None or known[0]() is not module:
            known = self._modules[id(module)] = (weakref.ref(module), len(self._modules))
        return known[1]

    def made(self, module: Any, frame: FrameType | None) -> None:
        """A module was made by the code of `frame`."""
        self._made[id(module)] = (weakref.ref(module), self.sites.site_of(frame))

    def made_at(self, module: Any) -> int:
        """The site where a module was made, or NONE."""
        known = self._made.get(id(module))
        return known[1] if known is not None and known[0]() is module else NONE

    def applied(self, kind: type, frame: FrameType | None) -> None:
        """A custom Function is called by the code of `frame`."""
        site = self.sites.site_of(frame)
        known = self._applied.setdefault(kind, set())
        if site == NONE or site in known:
            return
        known.add(site)
        number = self.functions.of_class(kind)
        if number is None:
            return
        self.register("class", number, site)
        for name in METHODS:
            function = self.functions.find(getattr(kind, name, None))
            if function is not None:
                self.register(name, function.number, site)

    def of_method(self, kind: type, name: str) -> tuple[int, Function] | None:
        """A method of a custom Function, and its registration."""
        function = self.functions.find(getattr(kind, name, None))
        number = None if function is None else self._latest.get(function.number)
        return None if function is None or number is None else (number, function)

    def of_class(self, kind: type) -> tuple[int, Function] | None:
        """The class of a custom Function that has no method of the kind that is called."""
        number = self.functions.of_class(kind) if kind in self._applied else None
        registration = None if number is None else self._latest.get(number)
        return None if number is None or registration is None else (registration, Function(number, (), ()))

    # --- running ------------------------------------------------------------------------------------------------

    def call(self, kind: str, added: tuple[int, Function], hook: Any, args: Any, kwargs: Any) -> Any:
        """Run a user's function as `run` does, and in any case."""

        def recording(hook: Any) -> Any:
            return self.run(kind, added, functools.partial(hook, *args, **kwargs), args)

        return guarded(self._recorder, "a callback", recording, hook, args, kwargs)

    def run(self, kind: str, added: tuple[int, Function], run: Callable[[], Any], given: Iterable[Any]) -> Any:
        """Run a callback and write down how it ended."""
        with Run(self, kind, added, given) as ran:
            ran.result = run()
        return ran.result

    def write(self, registration: int, place: int, result: Any, before: Any, ended: int) -> None:
        try:
            with torch._C.DisableTorchFunction():
                values = () if result is None else self._values(result[0])
                given = tuple(self._tensor_ids.id_of(tensor) for tensor, _ in before)
            self._rows.append((CALLBACK, "runs", registration, place, values, given, self.node, ended))
        except Exception as error:  # ours, never the user's
            self._recorder.internal_error("a callback", error)

    def _values(self, result: Any) -> tuple[Any, ...]:
        """(tensor or NONE, name of its type), flat, of each value that was handed back."""
        flat: list[Any] = []
        for value in result if isinstance(result, tuple | list) else (result,):
            number = self._tensor_ids.id_of(value) if isinstance(value, torch.Tensor) else NONE
            flat += (number, type(value).__name__)
        return tuple(flat)


class Run:
    """A context manager round a call of a callback, which writes down how it ended. It has no frame on the stack
    meanwhile: backward passes run inside each other."""

    __slots__ = ("_added", "_before", "_callbacks", "_kind", "_watch", "result")

    def __init__(self, callbacks: UserCallbacks, kind: str, added: tuple[int, Function], given: Iterable[Any]) -> None:
        self._callbacks, self._kind, self._added = callbacks, kind, added
        self._before = _versions(given)
        self._watch = Watch(added[1])
        self.result: Any = None

    def __enter__(self) -> Run:
        self._watch.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._watch.end()
        callbacks, (registration, function), result = self._callbacks, self._added, self.result
        if error is not None:
            ended = RAISED if _entered(function, error) else REFUSED
            callbacks.write(registration, NONE, None, self._before, ended)
        elif self._kind not in QUIET_KINDS or _amiss(self._kind, result, self._before):
            place = callbacks.functions.site(self._watch.place(result))
            callbacks.write(registration, place, (result,), self._before, RETURNED)


class Watched:
    """Stands for a user's function where the engine calls it. Everything asked of it is answered by the function."""

    __slots__ = ("_added", "_callbacks", "_kind", "hook")

    def __init__(self, hook: Any, callbacks: UserCallbacks, kind: str, added: tuple[int, Function]) -> None:
        self.hook = hook
        self._callbacks = callbacks
        self._kind = kind
        self._added = added

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._callbacks.asleep:
            return self.hook(*args, **kwargs)
        return self._callbacks.call(self._kind, self._added, self.hook, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.hook, name)


def _versions(given: Iterable[Any]) -> list[tuple[torch.Tensor, int]]:
    """The tensors among what a callback was given, one level into tuples, each with its version."""
    found = []
    with torch._C.DisableTorchFunction():
        for value in given:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, torch.Tensor):
                    found.append((item, _version(item)))
    return found


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return NONE


def _amiss(kind: str, result: Any, before: list[tuple[torch.Tensor, int]]) -> bool:
    """Whether a saved-tensor hook did what PyTorch is going to refuse."""
    with torch._C.DisableTorchFunction():
        if any(_version(tensor) != version for tensor, version in before):
            return True
    return kind == "unpack hook" and not isinstance(result, torch.Tensor)


def _entered(function: Function, error: BaseException) -> bool:
    """Whether the user's own code began to run: a call whose arguments don't fit raises before."""
    traceback = error.__traceback__
    if not isinstance(error, TypeError) or not function.layers:
        return True
    while traceback is not None:
        if traceback.tb_frame.f_code is function.layers[-1]:
            return True
        traceback = traceback.tb_next
    return False
