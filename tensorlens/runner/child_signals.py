"""Keeps this process alive when the terminal's signals stop the script, so that it can still report."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_RANK_GRACE = 5.0  # seconds that a rank gets to end after SIGTERM: its launcher kills this process soon after
_KILLING_INTERRUPT = 3  # this press of Ctrl-C kills a script that ignores the others


@dataclass(slots=True)
class Signals:
    """Counts Ctrl-C; `before_stop` is called before Ctrl-Z stops this process."""

    interrupts: int = 0
    before_stop: Callable[[], None] | None = None


@contextmanager
def signals_sent_to(child: subprocess.Popen[Any]) -> Iterator[Signals]:
    """Leaves Ctrl-C and SIGQUIT to the child: the terminal sends them to both processes. Passes SIGTERM on to it."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # only the main thread can handle signals
        return

    def interrupted(number: int, frame: Any) -> None:
        signals.interrupts += 1
        if signals.interrupts >= _KILLING_INTERRUPT:
            child.kill()

    def stopped(number: int, frame: Any) -> None:
        if signals.before_stop is not None:
            signals.before_stop()
        os.kill(os.getpid(), signal.SIGSTOP)

    def terminated(number: int, frame: Any) -> None:
        from tensorlens.runner.ranks import rank_in  # not above: this module is imported before the script starts

        child.send_signal(signal.SIGTERM)
        if rank_in(os.environ) is not None:
            killing = threading.Timer(_RANK_GRACE, child.kill)
            killing.daemon = True
            killing.start()

    handlers: dict[int, Callable[[int, Any], None]] = {
        signal.SIGINT: interrupted,
        signal.SIGQUIT: lambda number, frame: None,
        signal.SIGTERM: terminated,
        signal.SIGTSTP: stopped,
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
