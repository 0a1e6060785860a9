"""Programs with several threads: each is recorded apart, and none disturbs another."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from support.recording import traced

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.line_runs import LineRuns
from tensorlens.diagnostics import diagnose
from tensorlens.records.model import Backward, Call, Gap, Trace
from tensorlens.tracer.frames import shared_sites
from tensorlens.tracer.patches import backward
from tensorlens.tracer.recording.recorder import Recorder


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
    recorder._thread, recorder._mode = threading.local(), recorder
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
