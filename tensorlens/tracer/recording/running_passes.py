"""Reads gradients beside backward passes of other threads.

The engine replaces the gradient of a leaf without holding Python's lock. To read it at that time can end the process.
"""

from __future__ import annotations

from _thread import RLock, get_ident
from collections.abc import Collection, Iterable

import torch

Gradients = list[tuple[int, torch.Tensor]]


class RunningPasses:
    """Knows the backward passes that run now, in any thread."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._running: dict[int, tuple[int, Collection[int] | None]] = {}  # token -> thread, tensors that it reaches

    def begin(self, token: int, reached: Collection[int] | None) -> None:
        """Notes a pass that begins in this thread, with the ids of the tensors that it may give a gradient; None: any.

        It waits until no other thread is reading gradients.
        """
        with self._lock:
            self._running[token] = get_ident(), reached

    def end(self, token: int) -> None:
        self._running.pop(token, None)

    def read(self, tensors: Iterable[tuple[int, torch.Tensor]]) -> tuple[Gradients, set[int]]:
        """Reads `.grad` of tensors, each given with its id and without a gradient left out.

        Returns the gradients, and the ids of tensors that a pass of another thread may be giving a gradient now: these
        are not read.
        """
        gradients: Gradients = []
        unread: set[int] = set()
        with self._lock:
            thread = get_ident()
            others = [reached for other, reached in list(self._running.values()) if other != thread]
            for number, tensor in tensors:
                if others and any(reached is None or number in reached for reached in others):
                    unread.add(number)
                elif (gradient := tensor.grad) is not None:
                    gradients.append((number, gradient))
        return gradients, unread

    def renew_lock(self) -> None:
        """Makes a new lock, in a forked child, where only one thread goes on."""
        self._lock = RLock()
        thread = get_ident()
        self._running = {token: each for token, each in list(self._running.items()) if each[0] == thread}
