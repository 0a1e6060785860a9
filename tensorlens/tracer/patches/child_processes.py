"""Notes the processes that a program starts, and prepares those that are traced, too."""

from __future__ import annotations

import inspect
import multiprocessing.process
import multiprocessing.spawn
import os
import re
import shlex
import shutil
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import torch.distributed as dist
from torch.utils.data._utils.worker import _worker_loop

from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, existing, observe, observe_always
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.services import StartedProcess

STARTED = "a process was started to run {}: what runs in it is not traced"
RANK = (
    "a process was started as a rank of a distributed run, {}: what runs in it is not traced "
    "(`torchrun ... -m tensorlens explain SCRIPT` traces every rank)"
)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?w?(\.exe)?")
_LONGEST = 100  # characters of a command
_ENV = 10  # the place of `env` among the arguments of `Popen` after the command
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Command = Path | Sequence[Path]


@observe
def _process_start(recorder: Recorder, original: Function) -> Function:
    """Notes a process that `multiprocessing` starts anew. A fork is noted by `os.register_at_fork`."""

    def start(frame: FrameType, self: multiprocessing.process.BaseProcess) -> None:
        children = recorder.children
        name = what = ""
        with ErrorGuard(recorder, "a process that is started"):
            name = _name_of_target(self)
            what = "" if children is None else _description(self, name)  # `start` forgets the function
        original(self)
        with ErrorGuard(recorder, "a process that was started"):
            popen: Any = self._popen  # type: ignore[attr-defined]
            if children is not None:
                children.process.note_start(self.pid, what, frame)
                _note_end(children.process, popen)
            if popen.method != "fork" and not (children is not None and children.everything):
                recorder.gap(STARTED.format(f"`{name}`"), frame)

    return start


@observe
def _preparation(recorder: Recorder, original: Function) -> Function:
    """Adds to what a process reads before it imports the main module: it says that the process is followed."""

    def get_preparation_data(_: FrameType, /, *args: object) -> Any:
        data = original(*args)
        if recorder.children is not None:
            with ErrorGuard(recorder, "a process that is started"):
                return {"tensorlens": recorder.children.process.preparation(), **data}
        return data

    return get_preparation_data


def _note_end(process: StartedProcess, popen: Any) -> None:
    """Makes an object of `multiprocessing` that waits for a process note its exit code, once."""
    reference, noted = weakref.ref(popen), False

    def poll(*args: object) -> Any:
        nonlocal noted
        own = reference()
        code = type(own).poll(own, *args)  # type: ignore[union-attr]
        if code is not None and not noted:
            noted = True
            with suppress(Exception):
                process.note_exit(own.pid, code)  # type: ignore[union-attr]
        return code

    popen.poll = poll


@observe
def _exit_status(recorder: Recorder, original: Function) -> Function:
    """Notes the exit code of a process that `subprocess` started."""

    def _handle_exitstatus(_: FrameType, /, self: subprocess.Popen[bytes], *args: object) -> None:
        original(self, *args)
        if recorder.children is not None and recorder.children.has_some:
            with ErrorGuard(recorder, "the end of a process"):
                recorder.children.process.note_exit(self.pid, self.returncode)

    return _handle_exitstatus


def _description(process: multiprocessing.process.BaseProcess, name: str) -> str:
    """Returns "worker 0 of a DataLoader", "a worker of a Pool", or the name of the function that a process runs."""
    target, arguments = getattr(process, "_target", None), getattr(process, "_args", ())
    if getattr(target, "__module__", "") == "multiprocessing.pool":
        return "a worker of a Pool"
    if target is _worker_loop:
        number = inspect.signature(_worker_loop).bind(*arguments).arguments.get("worker_id")
        return "a worker of a DataLoader" if number is None else f"worker {number} of a DataLoader"
    return f"`{name}`"


def _name_of_target(process: multiprocessing.process.BaseProcess) -> str:
    """Returns the name of the function that a process calls, also if `torch.multiprocessing.spawn` starts it."""
    target, arguments = getattr(process, "_target", None), getattr(process, "_args", ())
    if str(getattr(target, "__module__", "")).startswith("torch.multiprocessing") and arguments:
        target = arguments[0]
    return str(getattr(target, "__qualname__", type(process).__qualname__))


@observe
def _popen(recorder: Recorder, original: Function) -> Function:
    """Notes a process that `subprocess` starts, if Python runs in it."""

    def __init__(
        frame: FrameType, /, self: subprocess.Popen[bytes], args: Command, *rest: object, **options: Any
    ) -> None:
        children, is_followed, environment = recorder.children, False, options.get("env")
        if children is not None and len(rest) < _ENV:
            with ErrorGuard(recorder, "a process that is started"):
                if children.process.follows(environment):
                    options["env"] = children.process.environment(environment)
                    is_followed = True
        original(self, args, *rest, **options)
        with ErrorGuard(recorder, "a process that was started"):
            words = _words(args)
            if not _runs_python(words):
                return
            if is_followed and children is not None:
                children.process.note_start(self.pid, f"`{_shown(words)}`", frame, _is_python(words[0]))
                return
            given = environment or os.environ
            is_rank = "RANK" in given and "WORLD_SIZE" in given
            recorder.gap((RANK if is_rank else STARTED).format(f"`{_shown(words)}`"), frame)

    return __init__


def _words(args: Command) -> list[str]:
    if isinstance(args, str | bytes | os.PathLike):
        text = os.fsdecode(args)
        try:
            return shlex.split(text)
        except ValueError:
            return text.split()
    return [os.fsdecode(word) for word in args]


def _runs_python(words: list[str]) -> bool:
    """Returns whether a command runs Python: by its name, by a script's first line, or through a shell or `mpirun`."""
    if len(words) == 3 and words[1] == "-c" and not _PYTHON.fullmatch(os.path.basename(words[0])):
        words = [words[0], *_words(words[2])]  # the command of a shell
    return any(_is_python(word) or word.endswith(".py") for word in words) or (
        bool(words) and _is_python_script(words[0])
    )


def _is_python(word: str) -> bool:
    return word == sys.executable or _PYTHON.fullmatch(os.path.basename(word)) is not None


def _is_python_script(word: str) -> bool:
    found = shutil.which(word)
    if found is None:
        return False
    with open(found, "rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def _shown(words: list[str]) -> str:
    """Returns a command as one would type it, in one line."""
    names = ["python" if word == sys.executable else word for word in words]
    text = " ".join(shlex.join(names).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


@observe_always
def _init_process_group(recorder: Recorder, original: Function) -> Function:
    """Traces a process from here on that becomes a rank of a distributed run."""

    def init_process_group(frame: FrameType, /, *args: object, **kwargs: object) -> object:
        if recorder.children is None:
            return original(*args, **kwargs)
        return recorder.children.process.joined_by(original, frame, args, kwargs)

    return init_process_group


_OWNERS = (dist, getattr(dist, "distributed_c10d", dist))
PATCHES = (
    Patch(multiprocessing.process.BaseProcess, "start", _process_start),
    Patch(multiprocessing.spawn, "get_preparation_data", _preparation),
    Patch(subprocess.Popen, "__init__", _popen),
    *existing((Patch(subprocess.Popen, "_handle_exitstatus", _exit_status),)),
    *existing(Patch(owner, "init_process_group", _init_process_group) for owner in _OWNERS),
)
