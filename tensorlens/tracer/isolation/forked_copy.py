"""Reads what would change the program if the program's own process read it.

A graph is such a thing. PyTorch keeps a Python object for each node that Python has read, and frees a long chain of
these by a recursion in C that overflows the stack. A forked copy of the process reads the graph and frees nothing.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SECONDS = 120.0  # that a copy may take
_PIECE = 1 << 20
_SLEEP = 0.02
_PATIENCE = 2.0  # seconds: far more than pass between the sleep and the fork


def read_in_copy(read: Callable[[], Any]) -> Any:
    """Calls `read` in a forked copy of this process and returns its result, which must be plain data.

    Returns None if no copy can be made without a trace in the program, if `read` raises, or if it takes too long.
    """
    if sys.platform != "linux" or signal.getsignal(signal.SIGCHLD) not in (signal.SIG_DFL, signal.SIG_IGN):
        return None  # the program's own handler would see that the copy ended
    try:
        receiving, sending = os.pipe()
    except OSError:
        return None
    try:
        c = ctypes.PyDLL(None)  # keeps the interpreter during a call
        copy = _fork(c)
        if copy == 0:
            _answer(read, sending, c)
        os.close(sending)
        return None if copy < 0 else _received(receiving, copy)
    finally:
        os.close(receiving)


def _fork(c: ctypes.PyDLL) -> int:
    """Forks as C does: the functions that the program has registered for its own forks do not run.

    This thread must keep the interpreter in the copy, where no other thread exists that could return it. So no thread
    may be asking for it during the fork: each that waits asks only after the interval in which nothing changed.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(max(interval, _PATIENCE))
    try:
        time.sleep(max(_SLEEP, min(2 * interval, 1.0)))  # whoever has asked gets it
        return int(c.fork())
    finally:
        sys.setswitchinterval(interval)


def _answer(read: Callable[[], Any], sending: int, c: ctypes.PyDLL) -> None:
    """Writes the result of `read` and ends the copy, in which nothing else may run: no exit handler, and no patch of
    `os._exit`."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        rest = memoryview(marshal.dumps(read()))
        while rest:
            rest = rest[os.write(sending, rest) :]
    finally:
        c._exit(0)


def _received(receiving: int, copy: int) -> Any:
    """Returns what a copy has written when it ends; None if it did not finish."""
    pieces: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    try:
        while select.select([receiving], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            piece = os.read(receiving, _PIECE)
            if not piece:
                return marshal.loads(b"".join(pieces)) if pieces else None
            pieces.append(piece)
        return None
    except (OSError, ValueError, EOFError, TypeError):
        return None
    finally:
        with suppress(OSError):
            os.kill(copy, signal.SIGKILL)  # it has written all, or takes too long
        with suppress(OSError):
            os.waitpid(copy, 0)
