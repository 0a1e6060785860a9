"""Bounds the memory of a long run: keeps its last calls, and earlier ones that explain tensors that are still alive.

Calls are kept as they are in the journal, which is small; `TraceBuilder` makes them into records. A call that leaves
the window is dropped, unless it made a tensor that is still alive or was one of the last to change it. So the line that
made a parameter is known even after a million steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from typing import Any

from tensorlens.journal.rows import CallRow, TensorRow
from tensorlens.records import model

CompactCall = tuple[int, ...]  # see `CallTemplateRow`
Call = CompactCall | CallRow
Item = tuple[int, Any, str]  # index, a call or another event, the optimizer step that was running

WINDOW = 20_000  # calls
_OTHERS = 5_000  # events of other kinds that outlive the window
_LATEST = 3  # calls that changed a tensor last
_PATIENCE = 3  # windows: without a census, the older calls leave when there are so many calls
_TAIL = 4  # ints at the end of a compact call: tensor, base, version, first sequence number


def is_call(content: Any) -> bool:
    """Returns whether an item is a call, not an event of another kind."""
    return type(content) is tuple or type(content) is CallRow


def tensors_of(call: Call) -> tuple[int, ...]:
    """Returns every tensor that a call names; NONE may be among them."""
    if isinstance(call, CallRow):
        return (*call.inputs[::2], *results_of(call))
    return (*call[1 : 1 - _TAIL : 2], call[1 - _TAIL])


def results_of(call: Call) -> tuple[int, ...]:
    """Returns the tensors that a call made, returned or changed."""
    if isinstance(call, CallRow):
        return (*call.outputs[::2], *call.writes[::3], *(state[0] for state in call.states))
    return (call[-_TAIL],)


def _gives_node(call: Call, tensor: int) -> bool:
    """Returns whether a call gave a tensor a new node. False if the call left the node as it was."""
    if not isinstance(call, CallRow):
        return True
    return any(state[0] == tensor and state[5] is not None and state[5] >= 0 for state in call.states)


class Retention:
    """Keeps the last `size` items of a run, and the earlier calls that explain a live tensor.

    Many items leave the window together. The best moment is a census of live tensors (`forget_all_but`): then only the
    calls that explain one of these are kept. A census also removes the dead tensors from `tensors`.
    """

    def __init__(self, size: int, tensors: dict[int, TensorRow]) -> None:
        self._size = size
        self._tensors = tensors
        self._recent: list[Item] = []
        self._explaining: dict[int, list[Item]] = {}  # tensor -> its first call, and the last that changed it
        self._others: deque[Item] = deque(maxlen=_OTHERS)
        self.dropped_nodes: dict[int, tuple[int, Call]] = {}  # tensor -> the last dropped call that gave it a node

    def add(self, items: Iterable[Item]) -> None:
        """Adds the next items of the run."""
        self._recent += items
        if len(self._recent) > _PATIENCE * self._size:
            self._retire(self._leaving())

    def _leaving(self) -> list[Item]:
        """Takes the items that are older than the window out of it."""
        count = max(len(self._recent) - self._size, 0)
        leaving = self._recent[:count]
        del self._recent[:count]
        return leaving

    def _retire(self, leaving: list[Item], needed: Container[int] | None = None) -> None:
        """Keeps those of the leaving calls that explain a tensor in `needed`, or any tensor if that is None."""
        for item in leaving:
            content = item[1]
            if is_call(content):
                for tensor in results_of(content):
                    if needed is None or tensor in needed:
                        self._keep(tensor, item)
            elif not isinstance(content, model.Backward):
                self._others.append(item)

    def _keep(self, tensor: int, item: Item) -> None:
        items = self._explaining.setdefault(tensor, [])
        items.append(item)
        if len(items) > _LATEST + 1:
            index, call, _ = items.pop(1)
            if _gives_node(call, tensor):
                self.dropped_nodes[tensor] = index, call

    def last(self) -> Any:
        """Returns the last call or event; None if there is none."""
        return self._recent[-1][1] if self._recent else None

    def replace_last(self, content: Any) -> None:
        """Puts another event in the place of the last one."""
        index, _, within = self._recent.pop()
        self._recent.append((index, content, within))

    def forget_all_but(self, alive: Iterable[int]) -> None:
        """Drops the calls that explain only dead tensors. `alive` are the ids of all others."""
        leaving, needed = self._leaving(), set(alive)
        for _, content, _ in self._recent:
            if is_call(content):
                needed.update(tensors_of(content))
        self._retire(leaving, needed)
        tables: tuple[dict[int, Any], ...] = (self._explaining, self._tensors, self.dropped_nodes)
        for table in tables:
            for tensor in [tensor for tensor in table if tensor not in needed]:
                del table[tensor]

    def items(self) -> list[Item]:
        """Returns all that is kept, in the order of the run."""
        self._retire(self._leaving())
        kept = {item[0]: item for items in self._explaining.values() for item in items}
        kept.update((item[0], item) for item in self._others)
        return [*(kept[index] for index in sorted(kept)), *self._recent]
