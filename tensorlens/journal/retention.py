"""What is kept of a run, however long: the last calls, and of the earlier ones those on which something alive rests.

Calls are held as the raw rows of the journal, which are small, and made into records only for a trace. A call that
leaves the window is dropped, unless it made a tensor that is still alive, or was one of the last to change it; so the
line that made a parameter is known after a million steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from typing import Any

from tensorlens.records import model

Raw = tuple[Any, ...]
Item = tuple[int, Any, str]  # index, a raw row or an event, the optimizer step that was running

WINDOW = 20_000  # calls
_OTHERS = 5_000  # events of other kinds that outlive the window
_LATEST = 3  # calls that changed a tensor last
_PATIENCE = 3  # times the window's size: how many calls wait, at the most, to leave it together
_TAIL = 4  # tensor, base, version, first sequence number: the end of a short row


def inputs_of(raw: Raw) -> tuple[int, ...]:
    """(tensor, version, tensor, version, ...) of a short row or a CALL row."""
    inputs: tuple[int, ...] = raw[1:-_TAIL] if is_short(raw) else raw[3]
    return inputs


def is_short(raw: Raw) -> bool:
    """Whether a row is a run of ints of the short way, not a CALL row."""
    return type(raw[1]) is int


def tensors_of(raw: Raw) -> tuple[int, ...]:
    """Every tensor that a row names; NONE may be among them."""
    if is_short(raw):
        return (*raw[1 : 1 - _TAIL : 2], raw[1 - _TAIL])
    return (*raw[3][::2], *results_of(raw))


def results_of(raw: Raw) -> tuple[int, ...]:
    """The tensors that a call made, returned or changed."""
    if is_short(raw):
        return (raw[-_TAIL],)
    outputs, writes, states = raw[4:7]
    return (*outputs[::2], *writes[::3], *(state[0] for state in states))


def _gives_node(raw: Raw, tensor: int) -> bool:
    """Whether a call gave a tensor the node that recorded it, rather than left the node as it was."""
    return is_short(raw) or any(state[0] == tensor and state[5] >= 0 for state in raw[6])


class Retention:
    """The items of a run. `infos` is what is known of tensors that no short row made; it is thinned out here too.

    Calls that are older than the last `size` leave together, best when it is just known which tensors are alive: most
    of them need not be looked at then.
    """

    def __init__(self, size: int, infos: dict[int, Any]) -> None:
        self._size = size
        self._infos = infos
        self._recent: list[Item] = []
        self._resting: dict[
            int, list[Item]
        ] = {}  # tensor -> the call that met it first, and those that changed it last
        self._others: deque[Item] = deque(maxlen=_OTHERS)
        self.dropped_nodes: dict[int, tuple[int, Raw]] = {}  # tensor -> the last dropped call that gave it a node

    def add(self, items: Iterable[Item]) -> None:
        self._recent += items
        if len(self._recent) > _PATIENCE * self._size:
            self._retire(self._leaving())

    def _leaving(self) -> list[Item]:
        count = max(len(self._recent) - self._size, 0)
        leaving = self._recent[:count]
        del self._recent[:count]
        return leaving

    def _retire(self, leaving: list[Item], needed: Container[int] | None = None) -> None:
        """Keep what tensors rest on; of the tensors only those that are `needed`, where that is known."""
        for item in leaving:
            content = item[1]
            if type(content) is tuple:
                for tensor in results_of(content):
                    if needed is None or tensor in needed:
                        self._rest(tensor, item)
            elif not isinstance(content, model.Backward):
                self._others.append(item)

    def _rest(self, tensor: int, item: Item) -> None:
        items = self._resting.setdefault(tensor, [])
        items.append(item)
        if len(items) > _LATEST + 1:
            index, raw, _ = items.pop(1)
            if _gives_node(raw, tensor):
                self.dropped_nodes[tensor] = index, raw

    def last(self) -> Any:
        """The content of the last item; None if there is none."""
        return self._recent[-1][1] if self._recent else None

    def replace_last(self, content: Any) -> None:
        index, _, within = self._recent.pop()
        self._recent.append((index, content, within))

    def forget_all_but(self, alive: Iterable[int]) -> None:
        """Drop what only tensors that are dead rest on; `alive` are the ids of the others."""
        leaving, needed = self._leaving(), set(alive)
        for _, content, _ in self._recent:
            if type(content) is tuple:
                needed.update(tensors_of(content))
        self._retire(leaving, needed)
        tables: tuple[dict[int, Any], ...] = (self._resting, self._infos, self.dropped_nodes)
        for held in tables:
            for tensor in [tensor for tensor in held if tensor not in needed]:
                del held[tensor]

    def items(self) -> list[Item]:
        """All that is kept, in the order of the run."""
        self._retire(self._leaving())
        kept = {item[0]: item for items in self._resting.values() for item in items}
        kept.update((item[0], item) for item in self._others)
        return [*(kept[index] for index in sorted(kept)), *self._recent]
