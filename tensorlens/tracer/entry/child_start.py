"""Waits in a new process until it imports torch, or until it becomes a rank, and then begins to trace it.

A process that does neither is left alone. So this module imports no torch, and nothing that a program could miss.
"""

from __future__ import annotations

import functools
import importlib.machinery
import json
import multiprocessing.process
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tensorlens.journal.process_folder import VARIABLE, Following, ProcessFolder

DISTRIBUTED = "torch.distributed.distributed_c10d"
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
_program: dict[str, Any] = {}  # what the parent says of the program; empty: the program is this process's own
_beginning: list[Following] = []  # at most one: this process waits for torch, or is traced
_run_ended: list[Callable[[BaseException | None], None]] = []  # is called when a process has run its function


def python_started(fields: dict[str, Any], site: str) -> None:
    """Is called by the `sitecustomize` of the folder `site`, before anything else of the process runs."""
    following = Following.from_fields(fields)
    if not _is_alive(following.reader):
        return
    if not following.everything:
        del os.environ[VARIABLE]
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != site]
        os.environ.update(PYTHONPATH=os.pathsep.join(paths))
        if not any(paths):
            del os.environ["PYTHONPATH"]
    if any(name in word for word in sys.orig_argv for name in _HELPERS):
        return
    ProcessFolder(following.folder).note("python", pid=os.getpid())
    _begin_with_torch(following, {})


def multiprocessing_started(text: str) -> None:
    """Is called in a process that `multiprocessing` has started anew, before it imports the program's main module."""
    fields = json.loads(text)
    following = Following.from_fields(fields.pop("following"))
    if not _is_alive(following.reader):
        return
    if following.everything:
        _begin_with_torch(following, fields)
    else:
        watch_runs()
        when_imported(DISTRIBUTED, functools.partial(_begin_with_group, following, fields))


def _begin_with_torch(following: Following, program: dict[str, Any]) -> None:
    watch_runs()
    _program.update(program)
    if _beginning:
        return
    _beginning.append(following)

    def begin(_: ModuleType) -> None:
        from tensorlens.tracer.entry.following import begin_here

        begin_here(following, _program)

    when_imported("torch", begin)


def _begin_with_group(following: Following, program: dict[str, Any], module: ModuleType) -> None:
    """Replaces the function that makes the default process group: a rank is traced from its call on."""
    original = getattr(module, "init_process_group", None)
    if original is None:
        return

    @functools.wraps(original)
    def init_process_group(*args: object, **kwargs: object) -> object:
        for owner in (module, sys.modules.get("torch.distributed")):
            if getattr(owner, "init_process_group", None) is init_process_group:
                setattr(owner, "init_process_group", original)  # noqa: B010
        from tensorlens.tracer.entry.following import begin_here

        return begin_here(following, program, joins=True).joined_by(original, sys._getframe(1), args, kwargs)

    for owner in (module, sys.modules.get("torch.distributed")):
        if hasattr(owner, "init_process_group"):
            setattr(owner, "init_process_group", init_process_group)  # noqa: B010


def when_imported(name: str, act: Callable[[ModuleType], None]) -> None:
    """Calls `act` with a module as soon as it has been imported."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        act(module)
        return
    sys.meta_path.insert(0, _Waiting(name, act))


class _Waiting:
    """Finds one module as the other finders do, once."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name, self._act = name, act

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._act)  # type: ignore[assignment]
                return spec
        sys.meta_path.insert(0, self)
        return None


class _Loader:
    """Loads a module as its own loader does, and then acts."""

    def __init__(self, loader: Any, act: Callable[[ModuleType], None]) -> None:
        self._loader, self._act = loader, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._act(module)
        except Exception:  # ours: the program goes on without a trace
            if os.environ.get("TENSORLENS_DEBUG"):
                raise


def watch_runs(ended: Callable[[BaseException | None], None] | None = None) -> None:
    """Makes a process of `multiprocessing` call `ended` when its function has returned or raised.

    Without `ended`, only makes sure that a later call of this function is in time.
    """
    if not _run_ended:
        _run_ended.append(lambda error: None)
        process: Any = multiprocessing.process.BaseProcess
        process._bootstrap = _watched(process._bootstrap)
    if ended is not None:
        _run_ended[0] = ended


def _watched(bootstrap: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(bootstrap)
    def _bootstrap(self: Any, *args: object, **kwargs: object) -> int:
        run = self.run

        def watched() -> None:
            try:
                run()
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next  # without this frame
                _run_ended[0](_raised_by_program(self, error))
                raise
            _run_ended[0](None)

        self.run = watched
        return bootstrap(self, *args, **kwargs)

    return _bootstrap


def _raised_by_program(process: Any, error: BaseException) -> BaseException:
    """Returns the exception that ended a function: `torch.multiprocessing` saves it, and leaves with an exit code."""
    target = str(getattr(getattr(process, "_target", None), "__module__", ""))
    if isinstance(error, SystemExit) and target.startswith("torch.multiprocessing") and error.__context__ is not None:
        return error.__context__
    return error


def _is_alive(process: int) -> bool:
    """Returns whether the command still reads what its processes write."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
