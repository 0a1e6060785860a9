"""Notes which step of each row a call takes, and how long the rows of ids are that a model has looked up."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.graph_values import PickedSteps
from tensorlens.tracer.saved_tensors.graph import Node
from tensorlens.tracer.training.saved_values import (
    Named,
    below,
    of_names,
    saved,
    saved_indices,
    saved_number,
    saved_sizes,
)

_LEAST, _MOST_ROWS, _MOST_FACTS = 4, 512, 4  # rows; facts of a pass


def look_at_steps(rows: RowBuffer, named: Named) -> None:
    """Writes a fact for each of the first calls that take one step of each row of a batch."""
    tables = [each for node in of_names(named, ("EmbeddingBackward0",)) if (each := saved(node, "indices")) is not None]
    padding = [saved_number(node, "padding_idx") for node in of_names(named, ("EmbeddingBackward0",))]
    written = 0
    for node, steps, size in _picked(named):
        if _LEAST <= len(steps) <= _MOST_ROWS and size > 1 and written < _MOST_FACTS and len(set(steps)) > 1:
            written += 1
            lengths = (_lengths(*each, (len(steps), size)) for each in zip(tables, padding, strict=False))
            known = next((each for each in lengths if each), ())
            rows.write_fact(PickedSteps, node._sequence_nr(), tuple(steps), size, known)


def _picked(named: Named) -> Iterator[tuple[Node, list[int], int]]:
    """Yields the calls that take steps: by indices, by a mask that is true once in each row, or one by one."""
    for node in of_names(named, ("IndexBackward0",)):
        sizes, indices = saved_sizes(node), saved_indices(node)
        if len(sizes) == 3 and len(indices) == 2 and indices[0] is not None and indices[1] is not None:
            for rows, steps, place in ((indices[0], indices[1], 1), (indices[1], indices[0], 0)):
                count = sizes[1 - place]
                if rows.shape == steps.shape == (count,) and torch.equal(rows, torch.arange(count)):
                    yield node, steps.tolist(), sizes[place]
        elif len(sizes) == 3 and len(indices) == 1:
            yield from _of_mask(node, indices[0])
    for node in of_names(named, ("GatherBackward0",)):
        table, index, axis = saved(node, "self"), saved(node, "index"), saved_number(node, "dim")
        if table is None or index is None or table.dim() != 3 or index.dim() != 3 or axis not in (0, 1):
            continue
        if index.shape[axis] == 1:
            yield node, index.select(2, 0).reshape(-1).tolist(), table.shape[int(axis)]
    for node in of_names(named, ("MulBackward0",)):
        for mask in (saved(node, "other"), saved(node, "self")):
            if mask is not None and mask.dim() == 3 and mask.shape[2] == 1:
                yield from _of_mask(node, mask[..., 0] != 0)
    for node in of_names(named, ("StackBackward0", "CatBackward0")):
        taken = [_of_one(each) for each in below(node)]
        known = [each for each in taken if each is not None]
        if len(known) == len(taken) and len({size for _, size in known}) == 1:
            yield node, [step for step, _ in known], known[0][1]


def _of_mask(node: Node, mask: torch.Tensor | None) -> Iterator[tuple[Node, list[int], int]]:
    if mask is not None and mask.dtype == torch.bool and mask.dim() == 2 and bool((mask.sum(1) == 1).all()):
        yield node, mask.int().argmax(1).tolist(), mask.shape[1]


def _of_one(node: Node) -> tuple[int, int] | None:
    """Returns (step, of how many) that `steps[n]`, or `steps[n : n + 1]`, takes of the steps of one row."""
    if node.name() == "UnsqueezeBackward0":
        (node,) = below(node) or (node,)
    sizes = saved_sizes(node)
    step = saved_number(node, "index" if node.name() == "SelectBackward0" else "start")
    if node.name() not in ("SelectBackward0", "SliceBackward0") or step is None or len(sizes) not in (2, 3):
        return None
    axis = saved_number(node, "dim")
    if axis not in (0, 1) or (len(sizes) == 3) != (axis == 1) or (axis == 1 and sizes[0] != 1):
        return None
    if node.name() == "SliceBackward0" and saved_number(node, "end") != step + 1:
        return None
    return step % sizes[axis], sizes[axis]


def _lengths(ids: torch.Tensor, padding: int | None, shape: tuple[int, int]) -> tuple[int, ...]:
    """Returns how many ids each row has before those of the padding at its end; () if no row is without padding.

    The table names the id of the padding: an id that rows end with may be a token, as the end of a text is.
    """
    if ids.shape != shape or padding is None or padding < 0:
        return ()
    places = torch.arange(1, shape[1] + 1) * (ids != padding)
    lengths = places.amax(1)
    return tuple(lengths.tolist()) if bool((lengths == shape[1]).any()) else ()
