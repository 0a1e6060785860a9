"""Notes the processes that a program starts. They are not traced, and the report says which they are."""

from __future__ import annotations

import multiprocessing.process
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

STARTED = "a process was started to run {}: what runs in it is not traced"
RANK = (
    "a process was started as a rank of a distributed run, {}: what runs in it is not traced "
    "(`torchrun ... -m tensorlens explain SCRIPT` traces every rank)"
)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?w?(\.exe)?")
_LONGEST = 100  # characters of a command
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Command = Path | Sequence[Path]


@observe
def _process_start(recorder: Recorder, original: Function) -> Function:
    """Notes a process that `multiprocessing` starts anew. A fork is noted by `os.register_at_fork`."""

    def start(frame: FrameType, self: multiprocessing.process.BaseProcess) -> None:
        name = ""
        with ErrorGuard(recorder, "a process that is started"):
            name = _name_of_target(self)
        original(self)
        if self._popen.method != "fork":  # type: ignore[attr-defined]
            recorder.gap(STARTED.format(f"`{name}`"), frame)

    return start


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
        original(self, args, *rest, **options)
        with ErrorGuard(recorder, "a process that was started"):
            words = _words(args)
            if _runs_python(words):
                environment = options.get("env") or os.environ
                is_rank = "RANK" in environment and "WORLD_SIZE" in environment
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
    for word in words:
        if word == sys.executable or _PYTHON.fullmatch(os.path.basename(word)) or word.endswith(".py"):
            return True
    return bool(words) and _is_python_script(words[0])


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


PATCHES = (
    Patch(multiprocessing.process.BaseProcess, "start", _process_start),
    Patch(subprocess.Popen, "__init__", _popen),
)
