"""Reads the graph after a failed backward pass: the saved tensors that fail their check, and where the pass stopped.

PyTorch's message names one node and two versions. Reading every saved tensor as the engine does finds all that fail,
each with the sequence number of its node, which leads to the line that saved it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import torch

from tensorlens.journal.rows import NONE, optional
from tensorlens.tracer.isolation.forked_copy import read_in_copy
from tensorlens.tracer.isolation.guard import reraise_user_error
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import isinf, isnan, numel, total
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.graph import (
    LEAF_SEQUENCE,
    MAX_NODES,
    Node,
    check_of,
    data_of,
    in_order_of_execution,
    is_cut,
    nodes_of,
    packed_or_tensor,
    raw_saved_of,
)
from tensorlens.tracer.saved_tensors.unchecked import FREED, VERSIONS

MAX_ROWS = 50
MAXFREED = 1_000  # rows of freed nodes: the one that failed may come after many intact ones
MAX_VALUES = 1_000_000
SavedRow = tuple[str, int, str, int | None, int | None, tuple[int, ...], int | None, int | None, str, str]
"""(node, its sequence number, slot, tensor, storage, shape, expected version, version now, problem, message)"""
_SHAPE = re.compile(r"Tensor \[([\d, ]*)\]\]")
_DOUBLE_BACKWARD = re.compile(r"BackwardBackward\d*$")
_FAILED_NODE = "Error detected in"  # anomaly mode's warning, which shows where the node was made
_COPY_SLICES = "torch::autograd::CopySlices"  # a write through a view: Python can read nothing that it keeps
_NAN = re.compile(r"Function '(\w+)' returned nan values in its (\d+)th output")


def failed_backward_nodes(
    recorder: Recorder, roots: list[torch.Tensor], message: str, inputs: Sequence[torch.Tensor], older: int
) -> tuple[SavedRow, ...]:
    """Returns the saved tensors below `roots` that backward can't use.

    Those whose check raises exactly `message` come first. Both groups are in the order in which the engine runs their
    nodes. The failed pass itself has freed the nodes that it ran, so a freed tensor gets a row only if an earlier pass
    can have freed it. A node that is freed as a whole without showing it gets a row with an empty message.

    Args:
        recorder: receives a gap if the graph can't be read.
        roots: the tensors that the pass began with.
        message: the text of its exception.
        inputs: the tensors whose gradients it computes; empty for all leaves.
        older: only nodes with a lower sequence number can have been freed by an earlier pass.
    """
    rows: list[SavedRow] = []
    try:
        if (nan := _NAN.search(message)) is not None:
            return _nan_rows(recorder, roots, nan, message)
        freed_below = older if FREED in message else 0
        rows.extend(_failing(recorder, in_order_of_execution(roots, inputs), freed_below))
        if is_cut(roots):  # the nodes that were read are then not the first in the order of execution, either
            found = read_in_copy(lambda: _failing_of_all(recorder, roots, inputs, freed_below))
            rows = rows if found is None else found
            if found is None and not any(row[-1] == message for row in rows):
                recorder.gap(f"the failed graph has more than {MAX_NODES} nodes: not all could be read")
    except Exception as error:  # ours: it must not replace the user's exception
        reraise_user_error(error)
        recorder.gap(f"the failed graph could not be read to its end ({type(error).__name__}: {error})")
    rows.sort(key=lambda row: row[-1] not in (message, ""))
    if not any(row[-1] == message for row in rows):
        rows[:0] = _from_message(message)
    return tuple(rows[: MAXFREED if FREED in message else MAX_ROWS])


def nondifferentiable_nodes(roots: list[torch.Tensor]) -> tuple[tuple[str, int | None], ...]:
    """Returns the nodes below `roots` that PyTorch has no derivative of, the nearest first: (name, sequence number of
    the forward node that they differentiate)."""
    nodes = [(node, node.name()) for node in nodes_of(roots)]
    return tuple(
        (name, _forward_node_of(node))
        for node, name in nodes
        if name.endswith("NotImplemented") or _DOUBLE_BACKWARD.search(name)
    )[:MAX_ROWS]


def last_executed_node(roots: list[torch.Tensor]) -> tuple[tuple[str, int], ...]:
    """Returns (name, sequence number) of the last node that a failed pass ran, or ().

    It is the first in execution order that still holds its saved tensors, if the pass ran without `retain_graph`.
    """
    last = read_in_copy(lambda: _last_executed(roots, math.inf)) if is_cut(roots) else _last_executed(roots, MAX_NODES)
    return () if last is None else last


def _last_executed(roots: list[torch.Tensor], limit: float) -> tuple[tuple[str, int], ...]:
    waiting = [
        (node._sequence_nr(), node.name())
        for node in nodes_of(roots, limit)
        if node._sequence_nr() < LEAF_SEQUENCE and any(_is_whole(raw) for _, raw in raw_saved_of(node))
    ]
    return tuple((name, sequence) for sequence, name in sorted(waiting)[-1:])


def _is_whole(raw: object) -> bool:
    try:
        return packed_or_tensor(raw) is not None
    except (RuntimeError, AttributeError):
        return False


def _forward_node_of(node: Node) -> int | None:
    """Returns the sequence number of the forward node whose backward made `node`.

    `node` is connected to the inputs of that forward node and to the forward node itself.
    """
    below = {following for following, _ in node.next_functions if following is not None}
    for forward in below:
        inputs = {following for following, _ in forward.next_functions if following is not None}
        if inputs and inputs <= below and forward._sequence_nr() < LEAF_SEQUENCE:
            return int(forward._sequence_nr())
    return None


def _nan_rows(recorder: Recorder, roots: list[torch.Tensor], nan: re.Match[str], message: str) -> tuple[SavedRow, ...]:
    """Returns a row for the node whose gradient was NaN, and one for each of its tensors with suspicious values."""
    named = [node for node in nodes_of(roots) if node.name() == nan.group(1) and node._sequence_nr() < LEAF_SEQUENCE]
    shown = [node for node in named if _was_shown(node, recorder.last_warning)]
    if not shown and is_cut(roots):  # another node of this name may be the one
        recorder.gap(f"the failed graph has more than {MAX_NODES} nodes: not all could be read")
        return ()
    rows: list[SavedRow] = []
    for node in sorted(shown or named, key=lambda node: -node._sequence_nr()):
        slot = f"output {nan.group(2)}"
        head: SavedRow = (node.name(), node._sequence_nr(), slot, None, None, (), None, None, "nan", message)
        suspicious = [
            row
            for slot, data in _inputs_of(node)
            if (row := _suspicious_values(recorder, node, slot, data)) is not None
        ]
        if suspicious or not rows:
            rows = [head, *suspicious]
        if suspicious:
            break
    return tuple(rows)


def _was_shown(node: Node, warning: str) -> bool:
    """Returns whether a warning of anomaly mode shows the traceback that it keeps with this node."""
    stack = "".join(node.metadata.get("traceback_", ()))
    return bool(stack) and stack in warning


def _inputs_of(node: Node) -> Iterator[tuple[str, torch.Tensor]]:
    """Finds (slot, tensor) of what a node's derivative is computed from, if not freed: leaves and saved tensors."""
    for position, (following, _) in enumerate(node.next_functions):
        variable = getattr(following, "variable", None)
        if variable is not None:
            yield f"input {position}", variable
    for slot, raw in raw_saved_of(node):
        data = data_of(raw)
        if data is not None:
            yield slot, data


def _suspicious_values(recorder: Recorder, node: Node, slot: str, data: torch.Tensor) -> SavedRow | None:
    """Returns a row for a tensor with values where a derivative may be NaN: zero, infinite or NaN."""
    if data.layout is not torch.strided or numel(data) > MAX_VALUES or has_torch_dispatch(data):
        return None
    with torch.no_grad():
        counts = {"0": int(total(data == 0)), "infinite": int(total(isinf(data))), "NaN": int(total(isnan(data)))}
    text = ", ".join(f"{count} of its {numel(data)} values are {what}" for what, count in counts.items() if count)
    row = _row(node, node._sequence_nr(), slot, data, text, recorder)
    return None if row is None or not text else (*row[:8], "nan", text)


def _from_message(message: str) -> list[SavedRow]:
    """Returns what the message itself says, if its saved tensor can't be reached: a checkpoint's hooks packed it."""
    versions, shape = VERSIONS.search(message), _SHAPE.search(message)
    if versions is None:
        return []
    now, expected = (int(n) for n in versions.groups())
    sizes = tuple(int(n) for n in shape.group(1).split(",") if n.strip()) if shape else ()
    return [("", NONE, "", None, None, sizes, expected, now, "version", message)]


def _failing_of_all(
    recorder: Recorder, roots: list[torch.Tensor], inputs: Sequence[torch.Tensor], older: int
) -> list[SavedRow]:
    """Lists the failing saved tensors of a whole graph, however large: only a copy of the process may read that."""
    with torch._C.DisableTorchFunction():
        return list(_failing(recorder, in_order_of_execution(roots, inputs, math.inf), older))


def _failing(recorder: Recorder, nodes: list[Node], older: int) -> Iterator[SavedRow]:
    """Finds the rows of the saved tensors that fail. Those of the node that anomaly mode has shown come first."""
    count = 0
    shown: list[Node] = []
    if torch.is_anomaly_enabled() and _FAILED_NODE in recorder.last_warning:
        shown = [node for node in nodes if _was_shown(node, recorder.last_warning)]
    for node in dict.fromkeys((*shown, *nodes)):
        may_be_freed = node._sequence_nr() < older
        rows = [row for slot, raw in raw_saved_of(node) if (row := _failing_row(recorder, node, slot, raw)) is not None]
        failing = [row for row in rows if row[-2] != "freed"]
        failing += [row for row in rows if row[-2] == "freed"][:may_be_freed]  # at most one
        if may_be_freed and node.name() == _COPY_SLICES:
            failing.append((node.name(), node._sequence_nr(), "", None, None, (), None, None, "freed", ""))
        yield from failing
        count += len(failing)
        if count > MAXFREED:
            return


def _failing_row(recorder: Recorder, node: Node, slot: str, raw: object) -> SavedRow | None:
    """Returns a row for a saved tensor that fails its check."""
    sequence = node._sequence_nr()
    sequence = NONE if sequence >= LEAF_SEQUENCE else sequence
    if isinstance(raw, RuntimeError):
        return _row(node, sequence, slot, None, str(raw), recorder)
    try:
        data = packed_or_tensor(raw)
    except (RuntimeError, AttributeError):
        return None  # packed by a hook: only the program's own unpacking may read it
    text = check_of(node, slot)
    if not isinstance(data, torch.Tensor | None):
        return None
    return None if text is None else _row(node, sequence, slot, data, text, recorder)


def _row(
    node: Node, sequence: int, slot: str, data: torch.Tensor | None, text: str, recorder: Recorder
) -> SavedRow | None:
    versions = VERSIONS.search(text)
    problem = "version" if versions else "freed" if FREED in text else "other"
    if data is None:
        return (node.name(), sequence, slot, None, None, (), None, None, problem, text)
    storage = recorder.tensor_ids.saved_storage(data)
    now, expected = (int(n) for n in versions.groups()) if versions else (None, None)
    if slot.startswith("saved_tensors[") and versions and data._version != now:
        return None  # another saved tensor of the same node is the one that fails
    known = recorder.tensor_ids.find(data)
    return (
        node.name(),
        sequence,
        slot,
        known,
        optional(storage),
        tuple(data.shape),
        expected,
        now,
        problem,
        text,
    )
