"""Compact calls are read alike as ints and as bytes, in any batches, in Python and in C; a bounded trace has the same
last calls as an unbounded one."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.random_journals import batches, random_rows

from tensorlens.journal import compact_calls, memory_rows, rows
from tensorlens.journal.compact_calls import HEAD
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import Tag
from tensorlens.records.model import Call, Gap, Script, Trace
from tensorlens.records.trace_file import dumps

SCRIPT = Script("program.py", (), "", "ok", 0, None)
WHOLE = 1 << 40  # calls: a window that no test fills
NAMES = (
    "split", "ends", "count", "keep_new", "merge", "keep_only", "add_aliases", "add_tensors", "add_changed",
    "add_related", "read_tables",
)  # fmt: skip
IN_PYTHON: dict[str, Any] = dict(zip(NAMES, compact_calls.in_python, strict=True))
IN_C = compact_calls._compiled()
compiled = pytest.mark.skipif(IN_C is None, reason="not built from this source: python hatch_build.py")
TEMPLATE = (Tag.CALL_TEMPLATE.value, 1, "torch.sin", 0, (), "", "", 0, False, None, 0, 0, 0, 1, rows.NEW)
SITE = (Tag.SITE.value, 0, "program.py", "<module>", (1, 1, 0, 1), (), None, "", False)
CALL = [1, 5, 0, 6, -1, 0, 9]


def traced(found: list[list[Any]], window: int = WHOLE) -> Trace:
    reader = Reader(SCRIPT, window)
    reader.read(found)
    return reader.trace()


@given(st.integers(0, 2**32), st.integers(1, 300), st.sampled_from([3, 20, WHOLE]))
@settings(max_examples=60, deadline=None)
def test_runs_as_bytes_are_read_as_ints_in_any_batches(seed: int, length: int, window: int) -> None:
    """A census drops what is dead then, and a full window what leaves it: only these may depend on the batches."""
    chance = random.Random(seed)
    pieces = random_rows(chance, length)
    whole = [item for piece in pieces for item in ([piece] if isinstance(piece, tuple) else piece)]
    as_ints = dumps(traced([whole], window))
    assert dumps(traced([[item for batch in batches(pieces, chance, 1) for item in batch]], window)) == as_ints
    if window == WHOLE:
        assert dumps(traced(batches(pieces, chance, 0.5), window)) == as_ints


@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_a_bounded_trace_has_the_last_calls_of_an_unbounded_one(seed: int, length: int, window: int) -> None:
    chance = random.Random(seed)
    pieces = random_rows(chance, length)
    unbounded, bounded = traced(batches(pieces, chance, 0.5)), traced(batches(pieces, chance, 0.5), window)
    assert bounded.totals == unbounded.totals
    assert [described(event, bounded) for event in bounded.events[-window:]] == [
        described(event, unbounded) for event in unbounded.events[-window:]
    ]
    kept = {event.index for event in bounded.events}
    assert len(kept) == len(bounded.events)
    assert kept <= {event.index for event in unbounded.events}


def described(event: Any, trace: Trace) -> object:
    """Describes an event without the numbers that a trace gives its tensors."""
    if isinstance(event, Gap):
        return event
    assert isinstance(event, Call)
    versions = [access.version for access in (*event.inputs, *event.outputs)]
    states = [(state.version, state.node, state.grad_fn) for state in event.states]
    return event.index, event.op, event.within, event.nodes, versions, states, len(event.writes)


@compiled
@given(st.integers(0, 2**32), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_the_functions_in_c_do_the_same(seed: int, length: int) -> None:
    chance = random.Random(seed)
    pieces = random_rows(chance, length)
    items = [item for batch in batches(pieces, chance, 0.3) for item in batch]
    if chance.random() < 0.5:
        items[chance.randrange(len(items))] = chance.choice([2**63, -(2**63), None, "x", True, 1.5, [], b"\1", 10**30])
    assert IN_C.split(items) == IN_PYTHON["split"](items)
    lengths = array("q", [0, *(1 + 2 * inputs + 4 for inputs in (0, 1, 1, 1, 2, 2, 2))])
    for run in IN_C.split(items)[0]:
        if isinstance(run, bytes):
            damaged = bytearray(run)
            if damaged and chance.random() < 0.3:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
                del damaged[: chance.choice([0, 0, 3, 8])]
            _compare(bytes(damaged), lengths, chance)


ROWS = (
    (int(Tag.STORAGE), 1, 16),
    (int(Tag.STORAGE), 1, 16, 5),
    (int(Tag.TENSOR), 1, 1, 1, (2, 2), "float32", "cpu", "Tensor", None),
    (int(Tag.TENSOR), 2, 1, 1, (2, 2), "float32", "cpu", "Tensor", 1),
    (int(Tag.TENSOR), 2),
    (int(Tag.TENSORS), array("q", [3, 4]).tobytes(), 16, None, (4,), "float32", "cpu", "Tensor"),
    (int(Tag.TENSORS), array("q", [5]).tobytes() + b"12", None, (3, 3, 3), (4,), "float32", "cpu", "Tensor"),
    (int(Tag.TENSORS), "ids", None, (3, 3, 3), (4,), "float32", "cpu", "Tensor"),
    (int(Tag.TENSORS), b"", None),
    (10**30, 2, 3),
    (True, 2, 3),
    (),
    b"12345678",
)


@compiled
@given(st.lists(st.sampled_from(ROWS), max_size=8), st.integers(0, 9))
def test_rows_of_storages_and_tensors_are_read_alike(items: list[Any], position: int) -> None:
    found = []
    for read in (IN_C.read_tables, IN_PYTHON["read_tables"]):
        sizes: dict[int, int] = {}
        tensors: dict[int, memory_rows.TensorRow | memory_rows.TensorKind] = {}
        end = read(items, position, sizes, tensors, memory_rows.TensorRow, memory_rows.TensorKind)
        kinds = {tensor: type(row) for tensor, row in tensors.items()}
        found.append((end, sizes, tensors, kinds))
    assert found[0] == found[1]


def _compare(run: bytes, lengths: array[int], chance: random.Random) -> None:
    ends = IN_C.ends(run, lengths)
    assert ends == IN_PYTHON["ends"](run, lengths)
    start, stop = sorted(chance.randrange(len(ends) // 4 + 1) for _ in range(2))
    counts = array("q", [0] * len(lengths)), array("q", [0] * len(lengths))
    IN_C.count(run, ends, start, stop, counts[0])
    IN_PYTHON["count"](run, ends, start, stop, counts[1])
    assert counts[0] == counts[1]
    for needed in (None, {chance.randrange(20) for _ in range(5)}):
        _compare_kept((run, ends, start, stop), needed, chance)
    tensors: tuple[set[int], set[int]] = set(), set()
    IN_C.add_tensors(run, ends, start, stop, tensors[0])
    IN_PYTHON["add_tensors"](run, ends, start, stop, tensors[1])
    assert tensors[0] == tensors[1]
    changed: tuple[dict[int, None], dict[int, None]] = {}, {}
    IN_C.add_changed(run, ends, start, stop, changed[0])
    IN_PYTHON["add_changed"](run, ends, start, stop, changed[1])
    assert list(changed[0]) == list(changed[1])
    some = {chance.randrange(20) for _ in range(3)}
    related: tuple[set[int], set[int]] = set(), set()
    IN_C.add_related(run, ends, start, stop, some, related[0])
    IN_PYTHON["add_related"](run, ends, start, stop, some, related[1])
    assert related[0] == related[1]


def _compare_kept(calls: tuple[bytes, bytes, int, int], needed: set[int] | None, chance: random.Random) -> None:
    """Compares what both keep of the calls of a run, and what they make of it at a census."""
    item = (7, array("q", [1, 2, 3, -9, 0, 0]).tobytes(), "")
    row = (8, ("a call that is not compact",), "")
    before: dict[int, Any] = dict.fromkeys(range(0, 20, chance.randrange(3, 9)), (row, item))
    before |= dict.fromkeys(range(1, 20, chance.randrange(3, 9)), HEAD.pack(4, 1) + item[1])
    packed = IN_PYTHON["merge"](b"", b"", b"", {n: HEAD.pack(n, 0) + item[1] for n in range(0, 20, 3)}, None)
    last, index, step = chance.randrange(-1, 9), chance.randrange(9), chance.randrange(3)
    also, found = chance.choice([None, {3, 5}]), list[tuple[Any, ...]]()
    for functions in (vars(IN_C), IN_PYTHON):
        kept, storages = dict(before), set[int | None]()
        others = functions["keep_new"](calls, needed, kept, last, (index, step, ["", "SGD.step", "Adam.step"]))
        rows_by_index = functions["add_aliases"](kept, storages)
        merged, left = functions["merge"](*packed, kept, needed), dict(kept)
        functions["keep_only"](left, needed or set(), also)
        found.append((others, kept, rows_by_index, storages, merged, left))
    assert found[0] == found[1]


@compiled
@pytest.mark.parametrize(("start", "stop"), [(0, 2), (1, 0), (-1, 1)])
def test_calls_that_a_run_does_not_have_are_refused(start: int, stop: int) -> None:
    run, ends = array("q", CALL).tobytes(), array("I", [len(CALL)]).tobytes()
    with pytest.raises(ValueError, match="no such calls"):
        IN_C.keep_new((run, ends, start, stop), None, {}, -1, (0, 0, [""]))
    with pytest.raises(ValueError, match="no such calls"):
        IN_C.keep_new((run, array("I", [len(CALL) + 1]).tobytes(), 0, 1), None, {}, -1, (0, 0, [""]))


@compiled
@pytest.mark.parametrize("kept", [b"", HEAD.pack(0, 1), HEAD.pack(0, -1)])
def test_a_kept_call_without_a_head_or_a_step_is_refused(kept: bytes) -> None:
    run, ends = array("q", CALL).tobytes(), array("I", [len(CALL)]).tobytes()
    with pytest.raises(ValueError, match="no such call"):
        IN_C.keep_new((run, ends, 0, 1), None, {CALL[-4]: kept}, -1, (0, 0, [""]))


@pytest.mark.parametrize("damage", [lambda run: run[:-1], lambda run: run[:-8], lambda run: run + bytes(8)])
def test_the_calls_before_a_damaged_one_are_read(damage: Any) -> None:
    trace = traced([[SITE, TEMPLATE, damage(array("q", CALL * 3).tobytes()), (Tag.GAP.value, "after", None)]])
    calls = [event for event in trace.events if isinstance(event, Call)]
    assert len(calls) in (2, 3)
    assert [event.reason for event in trace.events if isinstance(event, Gap)] == [rows.BROKEN]
