"""Imports torch once, then forks for every script: this makes hundreds of real runs in seconds.

Each fork runs the same code as the child process of the command (`tensorlens.tracer.entry.script.main`), or the script
plainly, or the whole command, whose child processes are forks of that fork. It has its own standard streams, working
directory and journal. Run as a program, this module reads one JSON request per line.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import inspect
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
import weakref
from typing import Any

SECONDS = 60
COMMAND_SECONDS = 300
MAIN = sys.modules[__name__]
PATH = sys.path[1:]  # of a Python that starts, after the entry of its script


def serve() -> None:
    import torch
    import torch._dynamo  # noqa: F401 - the point of this process; an optimizer's first step imports dynamo

    import tensorlens.tracer.entry.claim_checker
    import tensorlens.tracer.entry.script
    import tensorlens.tracer.reference.gradient_samples  # noqa: F401

    _import_command()
    _leave_libraries()
    gc.collect()  # else a script's own `gc.collect()` would count the garbage of the imports
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run_ranks(request) if "ranks" in request else _run(request)), flush=True)


def _import_command() -> None:
    """Imports what a command imports while it runs."""
    from tensorlens import analysis, diagnostics, journal, records, render, runner, trials

    for name in ("command_line", "rendered_report", "tried_fixes"):
        importlib.import_module(f"tensorlens.cli.{name}")
    for room in (analysis, diagnostics, journal, records, render, runner, trials):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)


def _leave_libraries() -> None:
    """Keeps torch from unregistering its operators at exit, which takes longer than most scripts run."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False


def _run(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        journal = os.open(request["journal"], os.O_RDWR | os.O_CREAT | os.O_TRUNC) if request.get("lens") else None
        child = os.fork()
        if child == 0:
            _take_place(request, out.fileno(), err.fileno())
            _run_command(request) if "words" in request else _become(request, journal)
        if journal is not None:
            os.close(journal)
        return _ended(child, [out, err])


def _run_ranks(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs a script as the ranks of one distributed run, in a fork each; `request["journals"]` has a file for each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    started, world = [], len(request["journals"])
    with contextlib.ExitStack() as stack:
        for rank, journal in enumerate(request["journals"]):
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
            descriptor = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            child = os.fork()
            if child == 0:
                place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
                os.environ.update({name: str(number) for name, number in place.items()}, MASTER_ADDR="127.0.0.1")
                os.environ.update(MASTER_PORT=port, OMP_NUM_THREADS="1")
                _take_place(request, *(stream.fileno() for stream in streams))
                _become(request, descriptor if request["lens"] else None)
            os.close(descriptor)
            started.append((child, streams))
        return [_ended(child, streams) for child, streams in started]


def _ended(child: int, streams: list[Any]) -> dict[str, Any]:
    _, status = os.waitpid(child, 0)
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read().decode("utf-8", "replace"))
    return {"returncode": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


def _take_place(request: dict[str, Any], out: int, err: int) -> None:
    """Gives this fork its standard streams and working directory."""
    signal.alarm(COMMAND_SECONDS if "words" in request else SECONDS)
    os.dup2(os.open(request.get("stdin", os.devnull), os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(request["cwd"])
    sys.stdin = os.fdopen(0, closefd=False)


def _run_command(request: dict[str, Any]) -> None:
    """Runs the command line as `python -m tensorlens` does; never returns."""
    import runpy

    from tensorlens.runner import python_process

    _set_environment(request["environment"])
    sys.orig_argv = [sys.executable, "-m", "tensorlens", *request["words"]]
    sys.argv = ["-m", *request["words"]]
    sys.path[:] = [os.getcwd(), *PATH]
    vars(python_process).update(subprocess=types.SimpleNamespace(Popen=_ForkedPython))
    code = "run_module('tensorlens', run_name='__main__', alter_sys=True)"
    _finish(compile(code, "<string>", "exec"), {"run_module": runpy.run_module}, is_traced=True)


def _set_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


class _ForkedPython(subprocess.Popen[Any]):
    """Runs `python -c CODE ARGUMENT ...` in a fork of this process."""

    def _execute_child(self, *given: Any) -> None:
        names = inspect.signature(subprocess.Popen._execute_child).parameters  # type: ignore[attr-defined]
        options = dict(zip(list(names)[1:], given, strict=True))
        pipes = [options[f"{ours}{theirs}"] for ours, theirs in (("p2c", "read"), ("c2p", "write"), ("err", "write"))]
        self.pid = os.fork()
        if self.pid == 0:
            _become_python(options["args"], options["env"], pipes)
        self._child_created = True
        all_pipes = [options[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        self._close_pipe_fds(*all_pipes)  # type: ignore[attr-defined]


def _become_python(command: list[str], environment: dict[str, str] | None, streams: list[int]) -> None:
    """Turns this fork into a Python that has just started; never returns."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stop in (signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP):
        signal.signal(stop, signal.SIG_DFL)
    for number, descriptor in enumerate(streams):
        if descriptor != -1:
            os.dup2(descriptor, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (stays open)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if environment is not None:
        _set_environment(environment)
    gc.enable()
    sys.modules["__main__"] = MAIN
    code = command.index("-c") + 1
    sys.argv = ["-c", *command[code + 1 :]]
    sys.path[:] = ["", *PATH]
    _finish(compile(command[code], "<string>", "exec"), {"__name__": "__main__"}, is_traced=True)


def _become(request: dict[str, Any], journal: int | None) -> None:
    """Turns this fork into the process that runs the script; never returns."""
    code = "plain(request)" if journal is None else "main()"
    config = {"kind": "file", "name": request["script"], "argv": request["argv"], "check_claims": request["claims"]}
    config |= {"compared": request["compared"], "training": request["training"]}
    sys.argv = ["-c", str(journal), json.dumps(config)]
    from tensorlens.tracer.entry.script import main

    names = {"main": main, "plain": _plain, "request": request}
    _finish(compile(code, "<string>", "exec"), names, is_traced=request["lens"])


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


def _finish(code: Any, names: dict[str, Any], is_traced: bool) -> None:
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
        if is_traced:
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
    while position is not None and position.tb_frame.f_code.co_filename in (serve.__code__.co_filename, "<string>"):
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
    while position is not None and position.tb_frame.f_code.co_filename in (serve.__code__.co_filename, "<string>"):
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
