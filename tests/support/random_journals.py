"""Makes the rows of programs that never ran: compact calls on a few tensors, optimizer steps, censuses."""

from __future__ import annotations

import random
from array import array
from typing import Any

from tensorlens.journal.memory_rows import AliveRow, TensorRow
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NEW, NONE, NOTHING, WRITTEN, CallTemplateRow, GapRow, SiteRow, WithinRow

STEP = "SGD.step"
Piece = tuple[Any, ...] | list[int]  # a row, or the ints of one compact call


def random_rows(chance: random.Random, length: int) -> list[Piece]:
    """Returns the rows of a program, a compact call as a list of its ints."""
    buffer = RowBuffer()
    kinds = [(inputs, result) for inputs in range(3) for result in (NEW, WRITTEN, NOTHING) if inputs or result == NEW]
    for number, (inputs, result) in enumerate(kinds, 1):
        op = STEP if number == 3 else f"torch.op{number}"
        buffer.write(SiteRow, number - 1, "program.py", "<module>", (number, number, 0, 1), (), None, "", False)
        node = None if number % 2 else "OpBackward0"
        fields = op, number - 1, (2,), "float32", "cpu", 8, node is not None, node, 0, int(node is not None), 0
        buffer.write(CallTemplateRow, number, *fields, inputs, result)
    buffer.write(TensorRow, 0, None, 0, (2,), "float32", "cpu", "Tensor", None)
    found: list[Piece] = list(buffer)
    versions, made, within = {0: 0}, 1, ""
    for moment in range(length):
        buffer.clear()
        what = chance.random()
        if what < 0.02:
            for tensor in [tensor for tensor in versions if tensor and chance.random() < 0.7]:
                del versions[tensor]
            buffer.write(AliveRow, tuple(versions))
        elif what < 0.06:
            within = "" if within else STEP
            buffer.write(WithinRow, within)
        elif what < 0.08:
            buffer.write(GapRow, f"reason {moment}", None)
        else:
            number = chance.randrange(len(kinds))
            inputs, result = kinds[number]
            used = [chance.choice(list(versions)) for _ in range(inputs)]
            accesses = [part for tensor in used for part in (tensor, versions[tensor])]
            if result == NEW:
                target, made = made, made + 1
                versions[target] = 0
            else:
                target = used[0]
                versions[target] += result == WRITTEN
            base = chance.choice(used) if used and result == NEW and chance.random() < 0.3 else NONE
            found.append([number + 1, *accesses, target, base, versions[target], 10 * moment])
        found += buffer
    return found


def batches(pieces: list[Piece], chance: random.Random, as_bytes: float) -> list[list[Any]]:
    """Returns the rows in batches of random sizes. `as_bytes` is the share of the runs of calls that are `bytes`."""
    found: list[list[Any]] = [[]]
    calls: list[int] = []

    def end_run() -> None:
        found[-1] += [array("q", calls).tobytes()] if chance.random() < as_bytes else calls
        calls.clear()

    for piece in pieces:
        if isinstance(piece, tuple):
            end_run()
            found[-1].append(piece)
        else:
            calls += piece
        if chance.random() < 0.2:
            end_run()
        if chance.random() < 0.1:
            end_run()
            found.append([])
    end_run()
    return found
