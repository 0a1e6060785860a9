"""Records the functions that the user registers with autograd, and each time autograd calls them.

A call from C++ cannot be seen from outside, so a `Watched` replaces the function where only the engine looks: in
the storage of a hook dictionary (whose Python methods return the function itself), in the list of a module's hook node,
on the stack of saved-tensor hooks. Nothing here keeps a tensor, module or class alive.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import torch

from tensorlens.journal.rows import NONE, CallbackRunRow, RegistrationRow, optional
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.recording.tensor_ids import TensorIds
from tensorlens.tracer.recording.tensor_states import TensorStates
from tensorlens.tracer.recording.user_functions import Function, ReturnWatch, UserFunctions

if TYPE_CHECKING:
    from tensorlens.records.callbacks import Ending

METHODS = ("forward", "setup_context", "backward", "vjp", "jvp", "vmap")
MAX_REGISTRATIONS = 20_000
Versions = list[tuple[torch.Tensor, int]]
QUIET_KINDS = ("pack hook", "unpack hook")  # called for every saved tensor: written only if something is wrong


class _Running(threading.local):
    """Knows, for each thread, which node runs."""

    node = NONE  # sequence number of the custom function's node whose backward runs


class UserCallbacks:
    """Writes the rows of the functions registered with autograd, of their registrations and their runs."""

    def __init__(self, recorder: TensorStates) -> None:
        self.recorder = recorder
        self._rows = recorder.rows
        self.sites: Sites = recorder.sites
        self._tensor_ids: TensorIds = recorder.tensor_ids
        self.functions = UserFunctions(self._rows, self.sites)
        self._registrations: dict[tuple[int, str, int, int], int] = {}
        self._latest: dict[int, int] = {}  # function -> its latest registration
        self._modules: dict[int, tuple[weakref.ref[object], int]] = {}
        self._made: dict[int, tuple[weakref.ref[object], int]] = {}
        self._applied: weakref.WeakKeyDictionary[type, set[int]] = weakref.WeakKeyDictionary()
        self.by_handle: dict[int, int] = {}  # a hook handle's id -> registration
        self.late: dict[int, int] = {}  # site -> number of a hook registered there after compiled code has run
        self.running = _Running()
        self._over = False

    @property
    def asleep(self) -> bool:
        """True if nothing is recorded now, or ever again."""
        return self._over or self.recorder.paused

    def end(self) -> None:
        """Ends the recording: watched functions are only called from here on."""
        self._over = True

    # --- registering --------------------------------------------------------------------------------------------

    def register(self, kind: str, function: int, site: int, target: int = NONE) -> int:
        """Returns the number of a registration. Writes a new one."""
        if len(self._registrations) > MAX_REGISTRATIONS:
            target = NONE
        key = (function, kind, site, target)
        number = self._registrations.get(key)
        if number is None:
            number = self._registrations[key] = len(self._registrations)
            self._rows.write(RegistrationRow, number, function, kind, site, optional(target))
        if kind != "passed on":
            self._latest[function] = number
        return number

    def add(
        self, kind: str, called: object, frame: FrameType | None, target: int = NONE
    ) -> tuple[int, Function] | None:
        """Registers a callable that the code of `frame` passed to PyTorch; None if PyTorch itself registers it."""
        function = self.functions.find(called)
        direct = frame is not None and self.sites.is_user(frame.f_code.co_filename)
        if function is None:
            if not direct:
                return None
            function = self.functions.of_library(called)
        elif not direct and function.number in self._latest:  # PyTorch passes on what the user registered before
            known = self._latest[function.number]
            self.register("passed on", function.number, self.sites.site_of(frame), target)
            return known, function
        site = self.sites.site_of(frame)
        return None if site == NONE else (self.register(kind, function.number, site, target), function)

    def watch(
        self, kind: str, called: Callable[..., Any], frame: FrameType | None, target: int = NONE
    ) -> Callable[..., Any]:
        """Returns what replaces a callable in the engine: a `Watched`, or the callable itself."""
        added = self.add(kind, called, frame, target)
        return called if added is None else Watched(called, self, kind, added)

    def module(self, module: object) -> int:
        """Returns the number of a module. It is never reused."""
        known = self._modules.get(id(module))
        if known is None or known[0]() is not module:
            known = self._modules[id(module)] = (weakref.ref(module), len(self._modules))
        return known[1]

    def live_modules(self) -> list[object]:
        """Returns the modules with a number that are alive."""
        return [module for ref, _ in list(self._modules.values()) if (module := ref()) is not None]

    def made(self, module: object, frame: FrameType | None) -> None:
        """Notes that the code of `frame` made a module."""
        self._made[id(module)] = (weakref.ref(module), self.sites.site_of(frame))

    def made_at(self, module: object) -> int:
        """Returns the site where a module was made, or NONE."""
        known = self._made.get(id(module))
        return known[1] if known is not None and known[0]() is module else NONE

    def applied(self, kind: type, frame: FrameType | None) -> None:
        """Notes that the code of `frame` calls a custom Function."""
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
        """Returns a method of a custom Function and its registration."""
        function = self.functions.find(getattr(kind, name, None))
        number = None if function is None else self._latest.get(function.number)
        return None if function is None or number is None else (number, function)

    def of_class(self, kind: type) -> tuple[int, Function] | None:
        """Returns the class of a custom Function that lacks the method that is called, and its registration."""
        number = self.functions.of_class(kind) if kind in self._applied else None
        registration = None if number is None else self._latest.get(number)
        return None if number is None or registration is None else (registration, Function(number, (), ()))

    # --- running ------------------------------------------------------------------------------------------------

    def run(self, kind: str, added: tuple[int, Function], arguments: Iterable[object]) -> Run | None:
        """Returns what records a run of a user's function, as a context; None if it can't be recorded."""
        with ErrorGuard(self.recorder, "a callback"):
            return Run(self, kind, added, arguments)
        return None

    def write(
        self, registration: int, place: int, result: tuple[object] | None, before: Versions, ending: Ending
    ) -> None:
        """Writes the row of a callback's run; `result` is None if it did not return."""
        try:
            with torch._C.DisableTorchFunction():
                values = () if result is None else self._values(result[0])
                arguments = tuple(self._tensor_ids.id_of(tensor) for tensor, _ in before)
            run = (registration, optional(place), values, arguments, optional(self.running.node), ending)
            self._rows.write(CallbackRunRow, *run)
        except Exception as error:  # ours, never the user's
            self.recorder.internal_error("a callback", error)

    def _values(self, result: object) -> tuple[tuple[int | None, str], ...]:
        """Returns the tensor id, if it has one, and the type's name of each returned value."""
        return tuple(
            (self._tensor_ids.id_of(value) if isinstance(value, torch.Tensor) else None, type(value).__name__)
            for value in (result if isinstance(result, tuple | list) else (result,))
        )


class Run:
    """A context manager around a call of a callback that writes how the call ended.

    It adds no frame to the stack during the call, since backward passes may nest deeply. An internal error does not
    change the result of the call.
    """

    __slots__ = ("_added", "_before", "_callbacks", "_kind", "_watch", "result")

    def __init__(
        self, callbacks: UserCallbacks, kind: str, added: tuple[int, Function], arguments: Iterable[object]
    ) -> None:
        self._callbacks, self._kind, self._added = callbacks, kind, added
        self._before = _versions(arguments)
        self._watch = ReturnWatch(added[1])
        self.result: object = None

    def __enter__(self) -> Run:
        ROOM.__enter__()
        with ErrorGuard(self._callbacks.recorder, "a callback"):
            self._watch.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with ErrorGuard(self._callbacks.recorder, "a callback"):
            self._end(error)
        ROOM.__exit__()

    def _end(self, error: BaseException | None) -> None:
        self._watch.end()
        callbacks, (registration, function), result = self._callbacks, self._added, self.result
        if error is not None:
            ending: Ending = "raised" if _entered(function, error) else "refused"
            callbacks.write(registration, NONE, None, self._before, ending)
        elif self._kind not in QUIET_KINDS or _is_wrong(self._kind, result, self._before):
            place = callbacks.functions.site(self._watch.place(result))
            callbacks.write(registration, place, (result,), self._before, "returned")


class Watched:
    """Replaces a user's function where the engine calls it. Its attributes are those of the function."""

    __slots__ = ("_added", "_callbacks", "_kind", "hook")

    def __init__(
        self, hook: Callable[..., Any], callbacks: UserCallbacks, kind: str, added: tuple[int, Function]
    ) -> None:
        self.hook = hook
        self._callbacks = callbacks
        self._kind = kind
        self._added = added

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = None if self._callbacks.asleep else self._callbacks.run(self._kind, self._added, args)
        if run is None:
            return self.hook(*args, **kwargs)
        with run:
            run.result = self.hook(*args, **kwargs)
        return run.result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.hook, name)


def registration_of(watched: Watched) -> int:
    """Returns the number of the registration of a watched function."""
    return watched._added[0]


def _versions(arguments: Iterable[object]) -> Versions:
    """Returns the tensors among the arguments of a callback, one level into tuples, each with its version."""
    versions = []
    with torch._C.DisableTorchFunction():
        for value in arguments:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, torch.Tensor):
                    versions.append((item, _version(item)))
    return versions


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return NONE


def _is_wrong(kind: str, result: object, before: Versions) -> bool:
    """Returns whether a saved-tensor hook did what PyTorch is about to reject."""
    with torch._C.DisableTorchFunction():
        if any(_version(tensor) != version for tensor, version in before):
            return True
    return kind == "unpack hook" and not isinstance(result, torch.Tensor)


def _entered(function: Function, error: BaseException) -> bool:
    """Returns whether the user's code began to run. A call with wrong arguments raises before that."""
    traceback = error.__traceback__
    if not isinstance(error, TypeError) or not function.layers:
        return True
    while traceback is not None:
        if traceback.tb_frame.f_code is function.layers[-1]:
            return True
        traceback = traceback.tb_next
    return False
