"""After a failed backward: a walk over the graph that turns its live nodes into plain facts.

PyTorch's message names one node and two versions. Reading every saved tensor of the graph the same way that the engine
does finds all that fail the check, each with its node's sequence number, which leads to the line that saved it.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Protocol

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.isolation.guard import reraise_user_error
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import isinf, isnan, numel, total

MAX_NODES = 20_000
MAX_FOUND = 50
MAX_FREED = 1_000  # the one that failed may come after many that were whole
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
_SHAPE = re.compile(r"Tensor \[([\d, ]*)\]\]")
_SECOND = re.compile(r"BackwardBackward\d*$")
_FAILED_NODE = "Error detected in"  # anomaly mode's warning, which shows where the node was made
_COPY_SLICES = "torch::autograd::CopySlices"  # a write through a view: nothing that it keeps can be read
_FREED = "Trying to backward through the graph a second time"
_NOT_A_NUMBER = re.compile(r"Function '(\w+)' returned nan values in its (\d+)th output")
MAX_VALUES = 1_000_000
LEAF_SEQUENCE = 2**63  # AccumulateGrad has no place in the order: 2**64 - 1


class Node(Protocol):
    """A node of the graph, as PyTorch's C++ side defines it. `_raw_saved_...` attributes hold what it saved."""

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    def name(self) -> str: ...
    def _sequence_nr(self) -> int: ...


def failed_backward_nodes(
    recorder: Any, roots: list[torch.Tensor], message: str, asked: Sequence[torch.Tensor], older: int
) -> tuple[Any, ...]:
    """Return the saved tensors of the graph below `roots` that can't be used, as `model.SavedTensor` rows.

    Those whose check raises the very text of `message` come first; both groups are in the order in which the engine
    runs their nodes, on the way to the tensors `asked` for if there are any. The failed pass itself has freed what it
    went through: of freed tensors, only those of nodes with a sequence number below `older`, which an earlier pass can
    have freed, get a row. So does a node that is freed as a whole and does not show it; its message is empty.
    """
    found: list[Any] = []
    try:
        if (not_a_number := _NOT_A_NUMBER.search(message)) is not None:
            return _of_nan(recorder, roots, not_a_number, message)
        _collect(recorder, in_order_of_execution(roots, asked), found, older if _FREED in message else 0)
    except Exception as error:  # ours: the user's own exception is on its way and must not be replaced
        reraise_user_error(error)
        recorder.gap(f"the failed graph could not be read to its end ({type(error).__name__}: {error})")
    found.sort(key=lambda row: row[-1] not in (message, ""))
    if not any(row[-1] == message for row in found):
        found[:0] = _from_message(message)
    return tuple(found[: MAX_FREED if _FREED in message else MAX_FOUND])


def _of_nan(recorder: Any, roots: list[torch.Tensor], told: re.Match[str], message: str) -> tuple[Any, ...]:
    """A row for the node whose gradient was not a number, and one for each tensor that it was given and that holds
    values at which a formula may have none."""
    named = [node for node in nodes_of(roots) if node.name() == told.group(1) and node._sequence_nr() < LEAF_SEQUENCE]
    shown = [node for node in named if _was_shown(node, recorder.last_warning)]
    rows: list[tuple[Any, ...]] = []
    for node in sorted(shown or named, key=lambda node: -node._sequence_nr()):
        head = (node.name(), node._sequence_nr(), f"output {told.group(2)}", None, None, (), None, None, "nan", message)
        odd = [row for slot, data in _given(node) if (row := _odd_values(recorder, node, slot, data)) is not None]
        if odd or not rows:
            rows = [head, *odd]
        if odd:
            break
    return tuple(rows)


def _was_shown(node: Any, warning: str) -> bool:
    """Whether the stack that anomaly mode printed is the one that it keeps with this node."""
    stack = "".join(node.metadata.get("traceback_", ()))
    return bool(stack) and stack in warning


def _given(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """What a node's formula is computed from, as far as it is left: leaves, and what the node saved."""
    for position, (following, _) in enumerate(node.next_functions):
        if hasattr(following, "variable"):
            yield f"input {position}", following.variable
    for slot, raw in raw_saved_of(node):
        try:
            if isinstance(data := raw.data, torch.Tensor):
                yield slot, data
        except (RuntimeError, AttributeError):
            continue  # freed, or packed by a hook


def _odd_values(recorder: Any, node: Any, slot: str, data: torch.Tensor) -> tuple[Any, ...] | None:
    if data.layout is not torch.strided or numel(data) > MAX_VALUES or has_torch_dispatch(data):
        return None
    with torch.no_grad():
        counts = {"0": int(total(data == 0)), "infinite": int(total(isinf(data))), "NaN": int(total(isnan(data)))}
    text = ", ".join(f"{count} of its {numel(data)} values are {what}" for what, count in counts.items() if count)
    row = _row(node, node._sequence_nr(), slot, data, text, recorder)
    return None if row is None or not text else (*row[:8], "nan", text)


def nondifferentiable_nodes(roots: list[torch.Tensor]) -> tuple[tuple[str, int], ...]:
    """(name, sequence number of the forward node that it differentiates) of the nodes below `roots` that torch gives
    no derivative; the nearest first."""
    found: list[tuple[str, int]] = []
    for node in nodes_of(roots):
        name = node.name()
        if name.endswith("NotImplemented") or _SECOND.search(name):
            found.append((name, _differentiated(node)))
    return tuple(found[:MAX_FOUND])


def last_executed_node(roots: list[torch.Tensor]) -> tuple[tuple[str, int], ...]:
    """(name, sequence number) of the node that a failed pass came to last, if it frees what it has gone through: of the
    nodes that still hold what they saved the one that is run first."""
    waiting = [
        (node._sequence_nr(), node.name())
        for node in nodes_of(roots)
        if node._sequence_nr() < LEAF_SEQUENCE and any(_is_held(raw) for _, raw in raw_saved_of(node))
    ]
    return tuple((name, sequence) for sequence, name in sorted(waiting)[-1:])


def _is_held(raw: Any) -> bool:
    try:
        return raw.data is not None
    except (RuntimeError, AttributeError):
        return False


def _differentiated(node: Any) -> int:
    """The sequence number of the forward node whose backward made `node`: it was given what that one was given, and
    its result."""
    below = {following for following, _ in node.next_functions if following is not None}
    for forward in below:
        given = {following for following, _ in forward.next_functions if following is not None}
        if given and given <= below and forward._sequence_nr() < LEAF_SEQUENCE:
            return int(forward._sequence_nr())
    return NONE


def _from_message(message: str) -> list[Any]:
    """What the message itself says, where its saved tensor can't be reached (packed by a checkpoint's hooks)."""
    versions, shape = _VERSIONS.search(message), _SHAPE.search(message)
    if versions is None:
        return []
    found, expected = (int(n) for n in versions.groups())
    sizes = tuple(int(n) for n in shape.group(1).split(",") if n.strip()) if shape else ()
    return [("", NONE, "", None, None, sizes, expected, found, "version", message)]


def _collect(recorder: Any, nodes: list[Any], found: list[Any], older: int) -> None:
    named: list[Any] = []
    if torch.is_anomaly_enabled() and _FAILED_NODE in recorder.last_warning:
        named = [node for node in nodes if _was_shown(node, recorder.last_warning)]
    for node in dict.fromkeys((*named, *nodes)):
        old = node._sequence_nr() < older
        rows = [_examine(recorder, node, slot, raw) for slot, raw in raw_saved_of(node)]
        freed = [row for row in rows if row is not None and row[-2] == "freed"]
        found += [row for row in rows if row is not None and row[-2] != "freed"]
        found += freed[:1] if old else []
        if old and node.name() == _COPY_SLICES:
            found.append((node.name(), node._sequence_nr(), "", None, None, (), None, None, "freed", ""))
        if len(found) > MAX_FREED:
            break


def in_order_of_execution(roots: list[torch.Tensor], asked: Sequence[torch.Tensor] = ()) -> list[Any]:
    """The nodes below `roots` as the engine takes them: of those whose users have all run, the one made last. With
    tensors `asked` for, only the nodes that lead to them."""
    nodes = list(nodes_of(roots))
    users = Counter(following for node in nodes for following, _ in node.next_functions)
    ready = [(-node._sequence_nr(), place, node) for place, node in enumerate(nodes) if not users[node]]
    heapq.heapify(ready)
    order: list[Any] = []
    place = count(len(nodes))
    while ready:
        *_, node = heapq.heappop(ready)
        order.append(node)
        for following, _ in node.next_functions:
            users[following] -= 1
            if following is not None and not users[following]:
                heapq.heappush(ready, (-following._sequence_nr(), next(place), following))
    return _leading_to(order, asked) if asked else order


def _leading_to(order: list[Any], asked: Sequence[torch.Tensor]) -> list[Any]:
    """Those of the nodes, which are in the order of execution, that a gradient passes on its way to one of `asked`."""
    leaves = {id(tensor) for tensor in asked if tensor.is_leaf}
    wanted = {tensor.grad_fn for tensor in asked if not tensor.is_leaf}
    wanted.update([node for node in order if id(getattr(node, "variable", None)) in leaves])
    needed: set[Any] = set()
    for node in reversed(order):
        if any(following in wanted or following in needed for following, _ in node.next_functions):
            needed.add(node)
    return [node for node in order if node in needed]


def nodes_of(roots: list[torch.Tensor]) -> Iterator[Any]:
    """The nodes of the graph, breadth first, each once."""
    queue: deque[Any] = deque()
    for root in roots:
        try:
            if root.grad_fn is not None:
                queue.append(root.grad_fn)
        except RuntimeError:
            continue
    seen: set[Any] = set(queue)
    while queue and len(seen) < MAX_NODES:
        node = queue.popleft()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def raw_saved_of(node: Any) -> Iterator[tuple[str, Any]]:
    """(slot, SavedTensor or None) of every tensor that a node keeps; lists of tensors one by one."""
    for name in dir(node):
        if name == "_raw_saved_tensors":
            slot = "saved_tensors"
        elif name.startswith("_raw_saved_"):
            slot = name.removeprefix("_raw_saved_")
        else:
            continue
        try:
            raw = getattr(node, name)
        except RuntimeError as error:
            yield slot, error
            continue
        if isinstance(raw, tuple):
            for position, item in enumerate(raw):
                yield f"{slot}[{position}]", item
        else:
            yield slot, raw


def _examine(recorder: Any, node: Any, slot: str, raw: Any) -> tuple[Any, ...] | None:
    """A row for a saved tensor that fails its check; None for a sound one."""
    sequence = node._sequence_nr()
    sequence = NONE if sequence >= LEAF_SEQUENCE else sequence
    if isinstance(raw, RuntimeError):
        return _row(node, sequence, slot, None, str(raw), recorder)
    try:
        data = raw.data
    except (RuntimeError, AttributeError):
        return None  # packed by a hook: only the program's own unpacking may touch it
    text = check_of(node, slot)
    if not isinstance(data, torch.Tensor | None):
        return None
    return None if text is None else _row(node, sequence, slot, data, text, recorder)


def data_of(raw: object) -> torch.Tensor | None:
    """Returns the tensor of a saved tensor, without its version check; None if it is freed or packed by a hook."""
    try:
        data = getattr(raw, "data", None)
    except RuntimeError:
        return None
    return data if isinstance(data, torch.Tensor) else None


def check_of(node: Any, slot: str) -> str | None:
    """The message with which reading the saved tensor fails, if it does."""
    try:
        getattr(node, "saved_tensors" if slot.startswith("saved_tensors[") else f"_saved_{slot.partition('[')[0]}")
    except RuntimeError as error:
        return str(error)
    except AttributeError:
        return None
    return None


def _row(node: Any, sequence: int, slot: str, data: Any, text: str, recorder: Any) -> tuple[Any, ...] | None:
    versions = _VERSIONS.search(text)
    problem = "version" if versions else "freed" if _FREED in text else "other"
    if data is None:
        return (node.name(), sequence, slot, None, None, (), None, None, problem, text)
    storage = recorder.tensor_ids.saved_storage(data)
    found, expected = (int(n) for n in versions.groups()) if versions else (None, None)
    if slot.startswith("saved_tensors[") and versions and data._version != found:
        return None  # another of the same node's saved tensors is the one that fails
    known = recorder.tensor_ids.find(data)
    where = None if storage == NONE else storage
    return (node.name(), sequence, slot, known, where, tuple(data.shape), expected, found, problem, text)
