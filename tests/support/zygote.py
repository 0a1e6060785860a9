"""Imports torch once, then forks for every script: this makes hundreds of real runs in seconds.

Each fork runs the same code as the child process of the command (`tensorlens.tracer.entry.script.main`), or the script
plainly, with its own standard streams, working directory and journal. Run as a program, this module reads one JSON
request per line.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import sys
import tempfile
import traceback
import types
import weakref
from typing import Any

SECONDS = 60


def serve() -> None:
    import torch
    import torch._dynamo  # noqa: F401 - the point of this process; an optimizer's first step imports dynamo

    import tensorlens.tracer.entry.claim_checker
    import tensorlens.tracer.entry.script
    import tensorlens.tracer.reference.gradient_samples  # noqa: F401

    _leave_libraries()
    gc.collect()  # else a script's own `gc.collect()` would count the garbage of the imports
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run(request)), flush=True)


def _leave_libraries() -> None:
    """Keeps torch from unregistering its operators at exit, which takes longer than most scripts run."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def _run(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        journal = os.open(request["journal"], os.O_RDWR | os.O_CREAT | os.O_TRUNC) if request["lens"] else None
        child = os.fork()
        if child == 0:
            _become(request, out.fileno(), err.fileno(), journal)
        _, status = os.waitpid(child, 0)
        if journal is not None:
            os.close(journal)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return {"returncode": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


def _become(request: dict[str, Any], out: int, err: int, journal: int | None) -> None:
    """Turns this fork into the process that runs the script; never returns."""
    import signal

    signal.alarm(SECONDS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(request["cwd"])
    sys.stdin = os.fdopen(0, closefd=False)
    code = "plain(request)" if journal is None else "main()"
    config = {"kind": "file", "name": request["script"], "argv": request["argv"], "check_claims": request["claims"]}
    config |= {"compared": request["compared"], "training": request["training"]}
    sys.argv = ["-c", str(journal), json.dumps(config)]
    from tensorlens.tracer.entry.script import main

    names = {"main": main, "plain": _plain, "request": request}
    _finish(compile(code, "<string>", "exec"), names)


def _plain(request: dict[str, Any]) -> None:
    """Runs a script as plain python does."""
    filename = os.path.abspath(request["script"])
    sys.argv = [request["script"], *request["argv"]]
    sys.path[0] = os.path.dirname(os.path.realpath(filename))
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=filename, __cached__=None)
    if "__annotations__" in vars(sys.modules["__main__"]):  # not since Python 3.14
        module.__dict__.update(__annotations__={})
    sys.modules["__main__"] = module
    with open(filename, "rb") as file:
        code = compile(file.read(), filename, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _finish(code: Any, names: dict[str, Any]) -> None:
    """Runs `code`, then exits as the interpreter does: traceback, threads, atexit, exit status."""
    import atexit
    import threading

    status = 0
    try:
        exec(code, names)
    except SystemExit as leave:
        if isinstance(leave.code, str):
            print(leave.code, file=sys.stderr)
        status = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
    except BaseException as error:
        if names["request"]["lens"]:
            _drop_own_frames(error)
            sys.excepthook(type(error), error, error.__traceback__)
        else:
            _show(error)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _drop_own_frames(error: BaseException) -> None:
    position = error.__traceback__
    while position is not None and position.tb_frame.f_code.co_filename in (__file__, "<string>"):
        position = position.tb_next
    error.__traceback__ = position


def _show(error: BaseException) -> None:
    _start_at_script(error, set())
    sys.excepthook(type(error), error, error.__traceback__)


def _start_at_script(error: BaseException | None, seen: set[int]) -> None:
    """Removes the frames of this file from the start of a traceback and of the chained ones."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    position = error.__traceback__
    while position is not None and position.tb_frame.f_code.co_filename in (__file__, "<string>"):
        position = position.tb_next
    error.__traceback__ = position
    _start_at_script(error.__cause__, seen)
    _start_at_script(error.__context__, seen)


if __name__ == "__main__":
    try:
        serve()
    except KeyboardInterrupt:
        traceback.print_exc()
    os._exit(0)  # torch takes seconds to leave a busy machine
