"""Programs with several threads: each is recorded apart, and none disturbs another."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from support.recording import traced

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.line_runs import LineRuns
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics import diagnose
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.model import Backward, Call, Gap, Trace
from tensorlens.tracer.entry import installation
from tensorlens.tracer.frames import shared_sites
from tensorlens.tracer.patches import backward
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.running_passes import RunningPasses
from tensorlens.tracer.recording.tensor_ids import TensorIds
from tensorlens.tracer.recording.thread_state import ModeOfThread


def in_threads(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pass_by(sites: shared_sites.SharedSites, site: int) -> None:
    sites.thread_begins()
    sites.note(site)
    sites.thread_ends()


def shared_lines(trace: Trace) -> set[str]:
    spans = [trace.sites[fact.site].span for fact in trace.inspection.threads]
    return {trace.sources[span.file].splitlines()[span.line - 1].strip() for span in spans}


def test_a_line_that_threads_run_at_once_is_noted() -> None:
    def program() -> None:
        both = threading.Barrier(2)

        def work() -> None:
            x = torch.ones(3)
            both.wait(10)
            x.sin()
            both.wait(10)

        in_threads(work, work)
        torch.ones(5)

    trace = traced(program)
    assert shared_lines(trace) == {"x = torch.ones(3)", "x.sin()"}


def test_threads_that_run_one_after_the_other_share_no_line() -> None:
    def program() -> None:
        def work() -> None:
            torch.ones(3).sin()

        for _ in range(3):
            in_threads(work)

    assert traced(program).inspection.threads == ()


def test_the_main_thread_and_another_share_a_line() -> None:
    def program() -> None:
        started, done = threading.Event(), threading.Event()

        def compute() -> None:
            torch.ones(3).cos()

        def work() -> None:
            compute()
            started.set()
            done.wait(10)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait(10)
        compute()
        done.set()
        thread.join()

    assert shared_lines(traced(program)) == {"torch.ones(3).cos()"}


def test_a_pass_changes_only_the_gradients_below_its_root() -> None:
    def program() -> None:
        a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        inside, over = threading.Event(), threading.Event()

        def one() -> None:
            def wait(grad: torch.Tensor) -> None:
                inside.set()
                over.wait(10)

            y = a * 2
            y.register_hook(wait)
            y.sum().backward()

        def two() -> None:
            inside.wait(10)
            (b * 3).sum().backward()
            over.set()

        in_threads(one, two)

    trace = traced(program)
    passes = [event for event in trace.events if isinstance(event, Backward)]
    assert [len(each.gradients) for each in passes] == [1, 1]
    assert len({each.gradients[0].tensor for each in passes}) == 2
    assert len(trace.inspection.threads) == 2  # each of the passes ran during the other


def test_quiet_concerns_one_thread() -> None:
    recorder = Recorder.__new__(Recorder)
    recorder.is_paused, recorder.quiet_threads, recorder._note_pause = False, set(), bool
    recorder._thread, recorder._mode = ModeOfThread(), recorder
    seen = []
    with recorder.quiet():
        assert recorder.paused
        in_threads(lambda: seen.append(recorder.paused))
        with recorder.quiet():
            pass
        assert recorder.paused
    assert seen == [False]
    assert not recorder.paused


def test_many_threads_leave_no_gap_and_no_finding() -> None:
    def program() -> None:
        def work() -> None:
            x = torch.ones(4, requires_grad=True)
            for _ in range(20):
                y = (x * x + 1).sin().sum()
                y.backward()

        in_threads(*[work] * 16)

    trace = traced(program)
    assert not [event for event in trace.events if isinstance(event, Gap)]
    assert sum(total.count for total in trace.totals if total.op == "Tensor.backward") == 16 * 20
    assert sum(isinstance(event, Call) and event.op == "Tensor.sin" for event in trace.events) == 16 * 20
    assert diagnose(trace) == ()


def test_a_thread_that_ended_leaves_its_sites() -> None:
    rows = type("Rows", (), {"facts": [], "write_fact": lambda self, *fact: self.facts.append(fact)})()
    sites = shared_sites.SharedSites(rows)
    sites.note(1)
    in_threads(lambda: pass_by(sites, 2))
    sites.note(2)
    assert rows.facts == []
    in_threads(lambda: pass_by(sites, 1))
    assert [site for _, site in rows.facts] == [1]


def test_the_runs_of_a_line_are_not_counted_from_the_order_of_threads() -> None:
    def program() -> None:
        turn = threading.Barrier(2)

        def work() -> None:
            x = torch.ones(3)
            for _ in range(3):
                turn.wait(10)
                torch.nn.functional.normalize(x * 2, dim=0)
                turn.wait(10)
                x.sin()

        in_threads(work, work)

    trace = traced(program)
    runs = LineRuns(trace, names_of(trace))
    text = {"normalize": "", ".sin()": ""}
    for part in text:
        sites = [
            site.id for site in trace.sites if part in trace.sources[site.span.file].splitlines()[site.span.line - 1]
        ]
        text[part] = runs.count(sites).text
    assert text[".sin()"] == "x6"
    assert text["normalize"] in ("x6", "x1+")


def test_a_pass_of_a_thread_reads_no_gradient_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine replaces gradients without holding Python's lock: reading one at that time ends the process."""
    read: list[tuple[int, ...]] = []
    monkeypatch.setattr(backward, "short_values", lambda gradient: read.append(tuple(gradient.shape)))

    def program() -> None:
        other = torch.ones(3, requires_grad=True)
        other.sum().backward()
        read.clear()
        in_threads(lambda: torch.ones(2, requires_grad=True).sum().backward())

    traced(program)
    assert read == [(2,)]


def labelled(program: Callable[[], object]) -> dict[str, str]:
    """Returns the lines that the only finding of a program labels, by role."""
    trace = traced(program)
    [diagnostic] = [each for each in diagnose(trace) if each.code == "saved-tensor-modified-inplace"]
    lines = {file: text.splitlines() for file, text in trace.sources.items()}
    return {label.role: lines[label.span.file][label.span.line - 1].strip() for label in diagnostic.labels}


def test_a_node_is_not_that_of_another_thread_with_its_number() -> None:
    def program() -> None:
        w = torch.ones(3, requires_grad=True)
        made: list[torch.Tensor] = []
        in_threads(lambda: made.append(w.tanh()))
        in_threads(lambda: w.exp().sum())  # the first node of this thread, too
        made[0].mul_(2)
        with suppress(RuntimeError):
            made[0].sum().backward()

    assert labelled(program) == {
        "saved_here": "in_threads(lambda: made.append(w.tanh()))",
        "modified_here": "made[0].mul_(2)",
        "needed_here": "made[0].sum().backward()",
    }


def test_of_two_nodes_with_one_number_and_name_none_is_named() -> None:
    def program() -> None:
        w = torch.ones(3, requires_grad=True)
        made: list[torch.Tensor] = []
        in_threads(lambda: made.append(w.tanh()))
        in_threads(lambda: w.tanh().sum())
        made[0].mul_(2)
        with suppress(RuntimeError):
            made[0].sum().backward()

    assert labelled(program) == {"modified_here": "made[0].mul_(2)", "needed_here": "made[0].sum().backward()"}


def test_a_write_of_another_thread_during_a_call_is_not_a_write_of_that_call() -> None:
    def program() -> None:
        w = torch.ones(3)
        inside, written = threading.Event(), threading.Event()

        class Waits(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                inside.set()
                written.wait(10)
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                return grad

        def write() -> None:
            inside.wait(10)
            w.add_(1)
            written.set()

        in_threads(write, lambda: Waits.apply(w))  # type: ignore[no-untyped-call]

    assert writing(traced(program)) == {"Tensor.add_"}


def test_a_call_can_write_if_it_is_one_that_does() -> None:
    def program() -> None:
        def work() -> None:
            x, mean, variance = torch.ones(3, 2), torch.zeros(2), torch.ones(2)
            x.mul_(2)
            x[0] = 1
            torch.add(x, 1, out=x)
            torch.nn.functional.relu(x, True)
            torch.nn.functional.hardtanh(x, inplace=True)
            torch.nn.functional.instance_norm(x[None].mT, mean, variance)
            torch.ops.aten.neg_(x)

        in_threads(work)

    names = {"Tensor.mul_", "Tensor.__setitem__", "torch.add", "nn.functional.relu", "nn.functional.hardtanh"}
    assert names <= writing(traced(program))
    assert any("neg_" in name for name in writing(traced(program)))


def writing(trace: Trace) -> set[str]:
    return {event.op for event in trace.events if isinstance(event, Call) and event.writes}


def test_each_thread_has_its_own_optimizer_step() -> None:
    def program() -> None:
        inside, over = threading.Event(), threading.Event()
        w = torch.ones(3, requires_grad=True)

        def closure() -> float:
            inside.set()
            over.wait(10)
            w.grad = torch.ones(3)
            return 0.0

        def other() -> None:
            inside.wait(10)
            torch.ones(4).sinh()
            over.set()

        in_threads(lambda: torch.optim.SGD([w], lr=0.1).step(closure), other)
        thread = threading.Thread(target=other)
        inside.clear()
        over.clear()
        thread.start()
        torch.optim.SGD([w], lr=0.1).step(closure)
        thread.join()
        w.detach().cosh()

    calls = [event for event in traced(program).events if isinstance(event, Call)]
    within = {op: {call.within for call in calls if call.op == op} for op in {call.op for call in calls}}
    assert within["Tensor.sinh"] == within["Tensor.cosh"] == {""}
    assert {"SGD.step"} in within.values()


def test_a_callback_is_not_run_by_the_node_of_another_thread() -> None:
    def program() -> None:
        inside, over = threading.Event(), threading.Event()

        class Waits(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                inside.set()
                over.wait(10)
                return grad * 2

        def one() -> None:
            Waits.apply(torch.ones(3, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]

        def two() -> None:
            inside.wait(10)
            y = torch.ones(3, requires_grad=True) * 1
            y.register_hook(lambda grad: grad)
            y.sum().backward()
            over.set()

        in_threads(one, two)

    callbacks = traced(program).callbacks
    nodes = {callbacks.registrations[run.registration].kind: run.node for run in callbacks.runs}
    assert nodes["backward"] is not None
    assert nodes["tensor hook"] is None


def test_no_gradient_is_read_that_a_pass_of_another_thread_may_replace() -> None:
    passes = RunningPasses()
    one, two = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    one.grad, two.grad = torch.ones(2), torch.ones(3)
    in_threads(lambda: passes.begin(7, {1}))
    assert passes.read([(1, one), (2, two)]) == ([(2, two.grad)], {1})
    in_threads(lambda: passes.begin(8, None))  # too large to be read
    assert passes.read([(1, one), (2, two)]) == ([], {1, 2})
    passes.end(7)
    passes.end(8)
    passes.begin(9, None)  # of this thread
    assert passes.read([(1, one), (2, two)]) == ([(1, one.grad), (2, two.grad)], set())


def test_a_gradient_that_was_not_read_has_not_changed() -> None:
    def program() -> None:
        w = torch.ones(3, requires_grad=True)
        w.sum().backward()
        inside, over = threading.Event(), threading.Event()

        def one() -> None:
            y = w * 2

            def wait(grad: torch.Tensor) -> None:
                inside.set()
                over.wait(10)

            y.register_hook(wait)
            y.sum().backward()

        def two() -> None:
            inside.wait(10)
            (w * 3).sum().backward()
            over.set()

        in_threads(one, two)

    passes = [event for event in traced(program).events if isinstance(event, Backward)]
    [last] = passes[-1].gradients
    assert (len(passes[0].gradients), len(passes[1].gradients)) == (1, 0)
    assert last.after == "[6, 6, 6]"


def test_a_pass_reads_only_the_retained_gradients_below_its_root(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, ...]] = []
    monkeypatch.setattr(backward, "short_values", lambda gradient: read.append(tuple(gradient.shape)))

    def program() -> None:
        other = torch.ones(3, requires_grad=True) * 2
        other.retain_grad()
        other.sum().backward()
        read.clear()

        def work() -> None:
            y = torch.ones(2, requires_grad=True) * 2
            y.retain_grad()
            y.sum().backward()

        in_threads(work)

    traced(program)
    assert set(read) == {(2,)}


@pytest.mark.parametrize("lock", ["sites", "passes", "steps", "tensors"])
def test_a_forked_child_waits_for_no_lock_of_its_parent(lock: str) -> None:
    def program() -> None:
        [recorder] = [each.recorder for each in installation._installations]
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            locks = {
                "sites": recorder.sites.adding,
                "passes": recorder.passes._lock,
                "steps": recorder._changing,
                "tensors": recorder.tensor_ids.adding,
            }
            with locks[lock]:
                held.set()
                over.wait(60)

        holding = threading.Thread(target=hold)
        holding.start()
        held.wait(10)
        child = os.fork()
        if not child:
            signal.alarm(20)
            w = torch.ones(3, requires_grad=True)
            (w * 2).sum().backward()
            torch.optim.SGD([w], lr=0.1).step()
            recorder.tensor_ids.add(w)
            os.kill(os.getpid(), signal.SIGKILL)
        over.set()
        holding.join()
        statuses.append(os.waitpid(child, 0)[1])

    statuses: list[int] = []
    traced(program)
    assert statuses == [signal.SIGKILL]


def test_gradients_are_not_off_by_a_block_of_another_thread() -> None:
    def program() -> None:
        inside, over = threading.Event(), threading.Event()

        def quiet() -> None:
            with torch.no_grad():
                inside.set()
                over.wait(10)

        def make() -> torch.Tensor:
            with torch.no_grad():
                return torch.ones(3, requires_grad=True) * 2

        thread = threading.Thread(target=quiet)
        thread.start()
        inside.wait(10)
        y = make()
        over.set()
        thread.join()
        y.sum()
        make().sum()

    trace = traced(program)
    facts = TraceIndex(trace)
    switches = [facts.mode_switch(call.index) for call in facts.calls if call.op == "Tensor.mul"]
    assert switches[0] is None
    assert switches[1] is not None
    assert trace.sites[switches[1].site].function.endswith("make")


def test_threads_that_meet_a_tensor_at_once_give_it_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, tensor = TensorIds(RowBuffer()), torch.ones(3)
    add, both = TensorIds._add, threading.Barrier(2)

    def add_slowly(*args: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # the other thread has looked the tensor up, too, unless it waits
        return add(*args)

    monkeypatch.setattr(TensorIds, "_add", add_slowly)
    numbers: list[int] = []
    in_threads(*[lambda: numbers.append(ids.add(tensor)[1])] * 2)
    assert len(set(numbers)) == 1
