"""The processes that a program starts, which are not traced: the report says which."""

from __future__ import annotations

import multiprocessing.process
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Any

from tensorlens.tracer.isolation.guard import ErrorGuard, caller
from tensorlens.tracer.recording.recorder import Recorder

STARTED = "a process was started to run {}: what runs in it is not traced"
RANK = (
    "a process was started as a rank of a distributed run, {}: what runs in it is not traced "
    "(`torchrun ... -m tensorlens explain SCRIPT` traces every rank)"
)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?w?(\.exe)?")
_LONGEST = 100  # characters of a command


def _process_start(recorder: Recorder, original: Any) -> Any:
    """A process that `multiprocessing` starts anew; one that it forks is noted where it forks."""

    def start(self: Any) -> None:
        name = ""
        with ErrorGuard(recorder, "a process that is started"):
            name = _name_of_target(self)
        original(self)
        if not recorder.paused and self._popen.method != "fork":
            recorder.gap(STARTED.format(f"`{name}`"), caller())

    return start


def _name_of_target(process: Any) -> str:
    """What a process is to call; that of `torch.multiprocessing.spawn` is given to a function of torch's own."""
    target, arguments = getattr(process, "_target", None), getattr(process, "_args", ())
    if str(getattr(target, "__module__", "")).startswith("torch.multiprocessing") and arguments:
        target = arguments[0]
    return str(getattr(target, "__qualname__", type(process).__qualname__))


def _popen(recorder: Recorder, original: Any) -> Any:
    """A process that `subprocess` starts, if Python runs in it: what it does with torch goes unseen."""

    def __init__(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        original(self, args, *rest, **options)
        if recorder.paused:
            return
        with ErrorGuard(recorder, "a process that was started"):
            words = _words(args)
            if _runs_python(words):
                environment = options.get("env") or os.environ
                is_rank = "RANK" in environment and "WORLD_SIZE" in environment
                recorder.gap((RANK if is_rank else STARTED).format(f"`{_shown(words)}`"), caller())

    return __init__


def _words(args: Any) -> list[str]:
    if isinstance(args, str | bytes | os.PathLike):
        text = os.fsdecode(args)
        try:
            return shlex.split(text)
        except ValueError:
            return text.split()
    return [os.fsdecode(word) for word in args]


def _runs_python(words: list[str]) -> bool:
    """Whether a command is python's, or of a script that names python in its first line, or has either in it, as that
    of a shell or of `mpirun` has."""
    if len(words) == 3 and words[1] == "-c" and not _PYTHON.fullmatch(os.path.basename(words[0])):
        words = [words[0], *_words(words[2])]  # what a shell is to run
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
    """A command as it would be typed, in one line."""
    names = ["python" if word == sys.executable else word for word in words]
    text = " ".join(shlex.join(names).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (multiprocessing.process.BaseProcess, "start", _process_start),
    (subprocess.Popen, "__init__", _popen),
)
