"""The compiled fast path writes the same rows as the one in Python, call by call
(`tensorlens/tracer/recording/_fast_path.c`)."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from support.daily import one_in
from support.plain_rows import plain_rows
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.testing._internal.common_methods_invocations import op_db
from unchanged.operations import samples

from tensorlens.compiled_sources import is_built_from
from tensorlens.journal.row_buffer import Tag
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.recording import compiled, tensor_ids
from tensorlens.tracer.recording.recorder import Recorder

FastPath = compiled.FastPath
pytestmark = pytest.mark.skipif(FastPath is None, reason="not built from this source: python hatch_build.py")

EVERYDAY = 60  # one operation of so many is tried every day, the others by `make unchanged`


def rows_of(program: Callable[[], object], fast_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records a program in a thread of its own, where the sequence numbers start at 0."""
    rows: list[Any] = []
    raised: list[BaseException] = []
    monkeypatch.setattr(compiled, "FastPath", fast_path)

    def run() -> None:
        torch.manual_seed(0)
        recorder = new_recorder((__file__,))
        try:
            with recorder:
                program()
        except BaseException as error:  # pytest would not see it in another thread
            raised.append(error)
        recorder.close()
        rows.extend(plain_rows(recorder.rows))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return rows


def assert_same_rows(program: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rows_of(program, None, monkeypatch)
    assert expected
    assert rows_of(program, FastPath, monkeypatch) == expected


# --- programs -------------------------------------------------------------------------------------------------------


def arithmetic() -> None:
    x, y = torch.ones(4, requires_grad=True), torch.arange(4)
    for _ in range(3):
        z = ((x * 2).sin() - y) / 3
        z.sum().backward()
    y.float().exp()


def writes() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    for _ in range(3):
        y = x * 2
        y.add_(1).mul_(y)
        y[0] = 5
        y[0].zero_()
        y.t().relu_()
        torch.add(x, 1, out=torch.empty(2, 3).requires_grad_(False)) if not x.requires_grad else None


def views() -> None:
    x = torch.arange(6.0).requires_grad_()
    for _ in range(3):
        a = x.view(2, 3)
        a.t()[0].unsqueeze(-1).expand(2, 4)
        a.detach().view(-1)
        (x * 1).view(3, 2).transpose(0, 1).add_(1)
        torch.empty(0).view(0, 1)


def lists_and_names() -> None:
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    for _ in range(3):
        torch.cat([x, y])
        torch.stack((x, y), dim=0)
        torch.sum(input=y, dim=0)
        torch.where(x > 0, y, x)
        torch.einsum("i,i->", x, y)
        x.split(1)
        torch.max(y, dim=0)
        torch.cat([torch.ones(1) for _ in range(40)])
        torch.nested.nested_tensor([x, x])


def lists_of_tensors() -> None:
    leaves = [torch.ones(2, requires_grad=True) for _ in range(5)]
    for _ in range(2):
        found = torch._foreach_mul(leaves, 2.0)
        rows = torch.stack(found).unbind(0)
        torch.cat(rows).split(4)[1].view(2, 2)
        torch._foreach_add([*found, torch.ones(3), torch.ones(3).double(), torch.nn.Parameter(torch.ones(()))], 1.0)
        torch.arange(5000.0).unbind()[7].mul_(2)


def functions_of_the_network_kind() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(inplace=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.mse_loss(model(torch.randn(2, 1, 4, 4)), torch.zeros(2, 2, 2, 2)).backward()
        optimizer.step()


def modes() -> None:
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        with torch.no_grad():
            x.exp()
            x.mul_(1)
        with torch.inference_mode():
            y = x * 2
            y.view(3, 1).add_(1)
            torch.zeros(2)
        with torch.enable_grad():
            x.log().sqrt()
        torch.where(x > 5, x / 0, x)
        x.bool().any().item()
        x.tolist() if not x.requires_grad else x.detach().tolist()


def refusals() -> None:
    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        for attempt in (lambda: x.add_(1), lambda: x.view(2, 2), lambda: x.matmul(torch.ones(4)), x.numpy):
            with pytest.raises((RuntimeError, ValueError)):
                attempt()
        with pytest.raises(TypeError):
            torch.add(x, "one")  # type: ignore[call-overload]


class Scaled(torch.Tensor):
    """A subclass that does nothing of its own."""


class Passing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def subclasses_and_other_modes() -> None:
    x, y = torch.ones(2).as_subclass(Scaled), torch.ones(2, requires_grad=True)
    for _ in range(3):
        (x * 2).sin()
        (x * y).add_(y)
        with Passing():
            (y * 2).cos()


def what_is_kept_in_odd_places() -> None:
    x = torch.ones(4, requires_grad=True)
    kept = []
    for n in range(2_000):
        y = x * n
        if n % 7 == 0:
            kept.append(y)
    torch.autograd.grad(sum(kept).sum(), x)  # type: ignore[union-attr]


def sparse_complex_quantized() -> None:
    x = torch.eye(3).to_sparse().requires_grad_()
    c = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for _ in range(3):
        torch.sparse.sum(x * 2)
        c.conj().real.view(2, 1)
        q.dequantize() + 1
        torch.empty(2, device="meta") * 2


PROGRAMS = [
    arithmetic,
    writes,
    views,
    lists_and_names,
    lists_of_tensors,
    functions_of_the_network_kind,
    modes,
    refusals,
    subclasses_and_other_modes,
    what_is_kept_in_odd_places,
    sparse_complex_quantized,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_leave_the_same_rows(program: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_rows(program, monkeypatch)


SAMPLED = one_in(EVERYDAY, op_db)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: f"{op.name}-{op.variant_test_name}")
def test_operations_leave_the_same_rows(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = next((dtype for dtype in (torch.float64, torch.int64) if dtype in op.supported_dtypes("cpu")), None)
    if dtype is None:
        pytest.skip("no dtype of those that are tried")
    functions = [f for f in (op.op, op.method_variant, op.inplace_variant) if f is not None]

    def program(fast_path: Any) -> list[Any]:
        made = samples(op, dtype, 3)
        return rows_of(lambda: attempt(functions, made), fast_path, monkeypatch)

    program(None)  # some functions do more the first time
    assert program(FastPath) == program(None)


def attempt(functions: list[Any], made: list[Any]) -> None:
    for sample in made:
        for function in functions:
            for _ in range(3):  # from the second time on there is a template
                with suppress(Exception):
                    function(sample.input, *sample.args, **sample.kwargs)


# --- the object itself ----------------------------------------------------------------------------------------------


def test_one_that_was_built_from_another_source_is_not_used() -> None:
    code = (
        "from tensorlens.tracer.recording import _fast_path; _fast_path.SOURCE = 'another'\n"
        "from tensorlens.tracer.recording import compiled; print(compiled.FastPath)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout == "None\n"


@pytest.mark.parametrize("changed", ["_fast_path.c", "fast_path_c/rows.h"])
def test_one_that_was_built_before_a_change_is_not_used(changed: str, tmp_path: Path) -> None:
    from tensorlens.tracer.recording import _fast_path

    here = Path(compiled.__file__).parent
    shutil.copy(here / "_fast_path.c", tmp_path)
    shutil.copytree(here / "fast_path_c", tmp_path / "fast_path_c")
    assert is_built_from(tmp_path / "_fast_path.c", _fast_path.SOURCE)
    with (tmp_path / changed).open("a") as file:
        file.write("\n")
    assert not is_built_from(tmp_path / "_fast_path.c", _fast_path.SOURCE)


def test_new_tensors_of_one_kind_have_one_row() -> None:
    recorder = new_recorder((__file__,))
    with recorder:
        found = torch._foreach_mul([torch.ones(2) for _ in range(9)], 2.0)
        torch.stack(found).unbind(0)
    recorder.close()
    tables = [row for row in recorder.rows if type(row) is tuple and row[0] in {Tag.TENSOR, Tag.TENSORS, Tag.STORAGE}]
    assert [(row[0], len(row[1]) // 8, row[3] is None) for row in tables] == [
        (Tag.TENSORS, 9, True),
        (Tag.TENSORS, 9, False),
    ]


def test_a_full_table_of_templates_makes_room_without_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [torch.ones(size, requires_grad=True) for size in range(1, 40)]

    def program() -> None:
        for _ in range(3):
            [x * 2 for x in inputs]
            kept = inputs[0] * 2  # used in between: it stays

        assert kept.requires_grad

    def with_few(**tables: Any) -> Any:
        assert FastPath is not None
        made.append(FastPath(**tables))
        made[-1].most_templates = 16
        return made[-1]

    made: list[Any] = []
    assert rows_of(program, with_few, monkeypatch) == rows_of(program, FastPath, monkeypatch)
    assert 0 < made[0].template_count <= 16


def test_a_block_of_a_dead_tensor_has_the_same_storage_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def retired() -> tuple[list[int], list[int], int]:
        blocks, past = compiled.table(), compiled.storages()
        tensors = [torch.ones(2) for _ in range(300)]
        for number, tensor in enumerate(tensors):
            blocks[16 * number + 16] = (weakref.ref(tensor), number, number, number + 1000)
        del tensors[100:]
        del tensor
        compiled.retire_dead(blocks, past, {1200: [], 1050: []})
        left = [number for number in range(300) if blocks.get(16 * number + 16) is not None]
        found = [past.get(16 * number + 16, -1) for number in range(300)]
        past[16] = 7
        assert (past.get(16, -1), past.get(8, -1), past.get(0, -1)) == (7, -1, -1)
        past.clear()
        return left, found, len(past)

    left, found, count = retired()
    assert left == [*range(100), 200]
    assert found == [*([-1] * 100), *range(1100, 1200), -1, *range(1201, 1300)]
    assert count == 0
    monkeypatch.setattr(compiled, "FastPath", None)
    assert retired() == (left, found, count)


def test_the_storage_of_a_saved_tensor_that_died_is_known_after_a_census(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_known() -> tuple[bool, bool]:
        recorder = new_recorder((__file__,))
        ids = recorder.tensor_ids
        with recorder:
            y = torch.ones(3, requires_grad=True).exp()
            storage, address = ids.entry(y)[3], y.data_ptr()
            z: Any = y.sum()
            del y
        ids._census_due = 0
        ids.sweep(next(ids.numbers))
        saved = z.grad_fn.next_functions[0][0]._saved_result
        recorder.close()
        return saved.data_ptr() == address and ids.blocks.get(address) is None, ids.saved_storage(saved) == storage

    assert is_known() == (True, True)
    monkeypatch.setattr(compiled, "FastPath", None)
    assert is_known() == (True, True)


def test_addresses_of_long_ago_are_forgotten_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_ids, "MANY_PAST", 8)

    def known() -> tuple[list[bool], int]:
        recorder = new_recorder((__file__,))
        ids = recorder.tensor_ids
        roots: list[list[tuple[Any, int]]] = []
        with recorder:
            x = torch.ones(3, requires_grad=True)
            for _ in range(4):  # censuses
                portion = [x.exp() for _ in range(8)]
                storages = [ids.entry(each)[3] for each in portion]
                roots.append([(each.sum(), storage) for each, storage in zip(portion, storages, strict=True)])
                del portion
                ids._census_due = 0
                ids.sweep(next(ids.numbers))
        found = [
            all(ids.saved_storage(root.grad_fn.next_functions[0][0]._saved_result) == storage for root, storage in each)
            for each in roots
        ]
        recorder.close()
        return found, max(len(ids._past), len(ids._older_past))

    found, most = known()
    assert found == [False, False, False, True]
    assert most < 24
    monkeypatch.setattr(compiled, "FastPath", None)
    assert known() == (found, most)


def test_the_garbage_collector_does_not_walk_the_weak_references() -> None:
    recorder, x = new_recorder((__file__,)), torch.ones(2)
    of_program = weakref.ref(x)
    with recorder:
        for _ in range(2):  # the first call goes through Python
            result = x * 2
    assert not gc.is_tracked(recorder.tensor_ids.entry(result)[0])
    assert gc.is_tracked(of_program)
    recorder.close()


def test_it_leaves_no_cycle_and_no_recorder_behind() -> None:
    recorder = new_recorder()
    with recorder:
        torch.ones(2).exp()
    recorder.close()
    gone = weakref.ref(recorder)
    del recorder
    gc.collect()
    assert gone() is None


def test_no_reference_is_lost_or_kept() -> None:
    recorder = new_recorder((__file__,))
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    several = [x, y]
    x.grad = torch.zeros(3)
    watched = (x, y, several, torch.Tensor.mul, torch.Tensor, None, True)

    def calls() -> None:
        for _ in range(200):
            (x * y).view(3, 1)
            torch.cat(several, dim=0)
            F.linear(x, torch.ones(3, 3))
            y.add_(1)
            x.data.add_(y.data)
            x.grad.add_(torch.ones(3, requires_grad=True).data)  # type: ignore[union-attr]
            with pytest.raises(RuntimeError):
                x.add_(1)

    with recorder:
        calls()
        recorder.rows.clear()
        gc.collect()
        before = [sys.getrefcount(value) for value in watched]
        calls()
        recorder.rows.clear()
        gc.collect()
        after = [sys.getrefcount(value) for value in watched]
    recorder.close()
    assert all(abs(now - then) < 50 for now, then in zip(after, before, strict=True)), (before, after)


def test_an_exception_of_ours_in_noting_a_refusal_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come while an exception is being noted."""

    def interrupted(self: Any, *args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "note_exception", interrupted)
    recorder = new_recorder()
    x = torch.ones(1, requires_grad=True)
    with recorder:
        (x * 2).add_(1)  # from now on `add_` is known
        with pytest.raises(KeyboardInterrupt):
            x.add_(1)
    recorder.close()


class Answering(TorchFunctionMode):
    """A mode that the recorder is put on top of: it is asked what the recorder asks."""

    def __init__(self, question: str, answer: Callable[[], object]) -> None:
        super().__init__()
        self.question = getattr(torch.Tensor, question).__get__
        self.answer = answer
        self.active = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.active and func == self.question:
            return self.answer()
        return func(*args, **(kwargs or {}))


def computed_under(mode: Answering, with_templates: bool = False) -> list[Any]:
    """Returns the results of calls of every kind when `mode` answers, with and without their templates."""
    recorder, results = new_recorder((__file__,)), []
    with mode, recorder:
        x, y = torch.ones(2, requires_grad=True), torch.zeros(2)
        for mode.active in (False, False, True) if with_templates else (False, True, False, True):
            results += [x * 2, y.add_(1), y.view(2, 1), (x * 1).view(2, 1), (x * 3).mul_(2), torch.cat([x, y])]
            results += [F.relu(x), torch.add(input=x, other=y), x.sum(dim=0)]
        mode.active = False
    recorder.close()
    assert recorder.rows
    return [tensor.tolist() for tensor in results]


def interrupt() -> None:
    raise KeyboardInterrupt


ANSWERS: list[Callable[[], object]] = [lambda: None, lambda: "x", lambda: 2**100, lambda: -1, object, lambda: int("no")]
ASKED = ["_base", "requires_grad", "is_leaf", "retains_grad"]
UNASKED = ["_version", "shape", "dtype", "device"]  # C++ is asked instead, unless there is no template yet


@pytest.mark.parametrize("question", [*ASKED, *UNASKED])
def test_a_strange_answer_changes_nothing_for_the_program(question: str) -> None:
    usual = computed_under(Answering(question, object))
    for answer in ANSWERS:
        assert computed_under(Answering(question, answer)) == usual


@pytest.mark.parametrize("question", ASKED)
def test_an_interrupted_question_interrupts_the_program(question: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        computed_under(Answering(question, interrupt))


def test_a_list_may_be_emptied_while_it_is_read() -> None:
    items: list[torch.Tensor] = []

    def empty() -> int:
        items.clear()
        return 0

    mode, recorder = Answering("_version", empty), new_recorder((__file__,))
    with mode, recorder:
        for mode.active in (False, True) * 50:
            items[:] = [torch.ones(1000).to_sparse() * n for n in range(3)]  # nothing else holds them
            with suppress(ValueError, RuntimeError):  # there is nothing to put together
                torch.cat(items)
        mode.active = False
    recorder.close()
    assert not items


@pytest.mark.parametrize("question", UNASKED)
def test_a_plain_tensor_is_not_asked(question: str) -> None:
    computed_under(Answering(question, interrupt), with_templates=True)


def test_the_lens_does_without_it() -> None:
    code = (
        "from tensorlens.tracer.recording import compiled\n"
        "from tensorlens.tracer.entry.new_recorder import new_recorder\n"
        "print(compiled.FastPath, type(new_recorder().__torch_function__))"
    )
    environment = os.environ | {"TENSORLENS_PURE_PYTHON": "1"}
    run = [sys.executable, "-c", code]
    ended = subprocess.run(run, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout == "None <class 'method'>\n"


def test_packed_calls_stay_in_order_while_another_thread_takes_the_rows() -> None:
    recorder, over = new_recorder((__file__,)), threading.Event()
    rows, taken = recorder.rows, list[Any]()

    def take() -> None:
        while not over.is_set():
            rows.settle()
            count = len(rows)
            taken.extend(rows[:count])
            rows[:count] = ()

    taking = threading.Thread(target=take)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        taking.start()
        with recorder:
            x = torch.ones(2)
            for _ in range(500):
                y = x * 2
                y.add_(1)
                with torch.no_grad():  # writes a row of its own
                    pass
    finally:
        over.set()
        sys.setswitchinterval(interval)
    taking.join()
    recorder.close()
    taken += rows
    between: list[int] = []  # how many numbers of compact calls precede each end of `no_grad`
    calls = 0
    for row in taken:
        if type(row) is bytes:
            calls += len(row) // 8
        elif type(row) is tuple and row[0] == Tag.GRAD_MODE and not row[4]:
            between.append(calls)
            calls = 0
    assert len(between) == 500
    assert set(between[2:]) == {7 + 7}
