"""Merged reports of several ranks of one run: who failed first, where they part, which collectives differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.traces import span, written_alias

from tensorlens.analysis.ranks.merge import merged
from tensorlens.records.distributed import Collective, CollectiveReturned, EndedAt
from tensorlens.records.merged_report import MergedReport
from tensorlens.records.model import Backward, Failure, Gradient, Rank, Site
from tensorlens.records.observations import Observations
from tensorlens.records.report import Diagnostic, Label, Report
from tensorlens.render import RenderOptions
from tensorlens.render.report.merged_text import merged_text

SOURCE = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\nif rank == 1:\n    a.exp()\n"


def rank(number: int, ended: float = 1.0, kind: str = "", line: int = 5, **script: Any) -> Report:
    """Returns the report of one of two ranks, which ran the same lines and failed with `kind`."""
    report = written_alias(SOURCE)
    trace = report.trace
    failure = Failure(4, kind, "RuntimeError", "oops", line - 1, None, (), (), (line - 1,), False)
    ended_with = {"outcome": "error", "exit_code": 1, "failure": 0, **script}
    trace = replace(
        trace,
        failures=(failure,),
        script=replace(trace.script, rank=Rank(number, 2, "host", ended), **ended_with),
        inspection=Observations(ended_at=(EndedAt(4, ended),)),
    )
    label = Label("rejected_here", trace.sites[line - 1].span, "raised here", line - 1)
    found = Diagnostic(kind or "uncaught-exception", "error", "`f()` refused what it was given", "", (label,))
    return Report(trace, (found,) if ended_with["failure"] == 0 else ())


def endings(report: MergedReport) -> list[str]:
    return [each.ending for each in report.endings]


def test_the_rank_that_failed_first_by_time_is_explained_and_the_later_one_is_not() -> None:
    report = merged([rank(0, ended=2.0, line=5), rank(1, ended=1.0, line=4)])
    assert (report.first, endings(report)) == (1, ["failed later", "failed first"])
    assert [each.ranks for each in report.findings] == [(1,)]
    text = merged_text(report, "table", RenderOptions())
    assert "RuntimeError at line 5, after rank 1 had failed" in text
    assert text.count("refused what it was given") == 1


def test_a_rank_whose_peer_was_gone_is_never_first_even_if_its_clock_is_early() -> None:
    report = merged([rank(0, ended=1.0, kind="peer-process-gone"), rank(1, ended=2.0, line=4)])
    assert (report.first, endings(report)) == (1, ["waited", "failed first"])
    assert [each.diagnostic.code for each in report.findings] == ["uncaught-exception"]


def test_what_all_ranks_did_alike_is_said_once() -> None:
    report = merged([rank(0), rank(1)])
    assert endings(report) == ["failed first", "failed alike"]
    assert [each.ranks for each in report.findings] == [(0, 1)]
    assert "ranks 0 and 1 failed alike: RuntimeError at line 5" in merged_text(report, "table", RenderOptions())


@pytest.mark.parametrize(
    ("other", "first", "ending"),
    [
        ({"outcome": "killed", "exit_code": -9, "failure": None}, 1, "failed first"),
        ({"outcome": "killed", "exit_code": -15, "failure": None}, 1, "failed first"),
        ({"outcome": "timeout", "exit_code": -15, "failure": None}, None, "stopped"),
        ({"outcome": "ok", "exit_code": 0, "failure": None}, None, "ended"),
    ],
)
def test_who_ended_the_rank_that_another_one_waited_for(other: dict[str, Any], first: int | None, ending: str) -> None:
    report = merged([rank(0, kind="peer-process-gone"), rank(1, **other)])
    assert (report.first, endings(report)) == (first, ["waited", ending])


def test_ranks_that_sigterm_stopped_did_not_fail_first() -> None:
    stopped: dict[str, Any] = {"outcome": "killed", "exit_code": -15, "failure": None}
    assert merged([rank(0, **stopped), rank(1, **stopped)]).first is None
    report = merged([rank(0, ended=1.0, **stopped), rank(1, ended=2.0)])
    assert (report.first, endings(report)) == (1, ["stopped", "failed first"])


def test_a_rank_without_a_trace_is_named() -> None:
    report = merged([rank(1, kind="peer-process-gone")])
    assert (report.first, endings(report)) == (None, ["no trace", "waited"])
    assert "there is no trace of rank 0" in merged_text(report, "table", RenderOptions())


def test_ranks_part_at_the_line_that_one_of_them_ran() -> None:
    one, other = rank(0), rank(1)
    trace = other.trace
    sites = (*trace.sites, Site(5, span(SOURCE, 7, "a.exp()"), "<module>", None, ()))
    events = (*trace.events[:3], replace(trace.events[3], site=5))
    report = merged([one, replace(other, trace=replace(trace, sites=sites, events=events))])
    (found,) = (each for each in report.differences if each.kind == "branch")
    assert (
        found.text == "rank 1 went on at line 7, rank 0 at line 4: the `if` of line 6, `rank == 1`, parts these lines"
    )


def test_a_rank_that_only_ended_earlier_took_no_other_branch() -> None:
    one, other = rank(0), rank(1, outcome="killed", exit_code=-9, failure=None)
    shorter = replace(other, trace=replace(other.trace, events=other.trace.events[:2]))
    assert not merged([one, shorter]).differences


def with_backward(report: Report, after: str | None) -> Report:
    """Returns the report of a rank with a backward pass, in which the parameter `a` gets the gradient `after`."""
    trace = report.trace
    tensors = (replace(trace.tensors[0], type="Parameter"), *trace.tensors[1:])
    passed = Backward(4, "Tensor.backward", 4, (), (Gradient(0, None, after),), 4, False, False, False)
    return replace(report, trace=replace(trace, tensors=tensors, events=(*trace.events, passed)))


def test_a_parameter_that_got_no_gradient_on_one_rank() -> None:
    (found,) = merged([with_backward(rank(0), "[1, 1, 1]"), with_backward(rank(1), None)]).differences
    assert (found.kind, found.ranks) == ("gradient", (1,))
    assert found.text == "no gradient on rank 1, but on rank 0: `a`"
    assert not merged([with_backward(rank(0), None), with_backward(rank(1), None)]).differences


def test_a_rank_that_made_no_backward_pass_lacks_no_gradient() -> None:
    report = merged([with_backward(rank(0), "[1, 1, 1]"), rank(1)])
    assert not [each for each in report.differences if each.kind == "gradient"]


def with_collectives(report: Report, started: list[Collective], returned: int) -> Report:
    facts = Observations(
        collectives=tuple(started), returned=tuple(CollectiveReturned(4, number) for number in range(returned))
    )
    return replace(report, trace=replace(report.trace, inspection=facts))


def started(number: int, op: str, site: int, shape: tuple[int, ...] = (3,)) -> Collective:
    return Collective(number, number, op, site, (0, 1), shape, "float32")


def test_the_first_collective_that_differs() -> None:
    ranks = [
        with_collectives(rank(0), [started(0, "all_reduce", 1), started(1, "all_reduce", 2)], 2),
        with_collectives(rank(1), [started(0, "all_reduce", 1), started(1, "all_reduce", 3, (2,))], 2),
    ]
    (found,) = merged(ranks).differences
    assert found.text == (
        "collective 2 of their group differs: rank 0 starts `all_reduce` of [3] float32 at line 3, "
        "rank 1 `all_reduce` of [2] float32 at line 4"
    )


def test_gathered_tensors_may_have_different_shapes() -> None:
    ranks = [with_collectives(rank(n), [started(0, "all_gather", 1, (n + 1,))], 1) for n in range(2)]
    assert not merged(ranks).differences


def test_a_rank_that_was_stopped_inside_a_collective_and_the_one_that_did_not_arrive() -> None:
    stopped: dict[str, Any] = {"outcome": "timeout", "exit_code": -15, "failure": None}
    ranks = [
        with_collectives(rank(0, **stopped), [started(0, "all_reduce", 1), started(1, "all_reduce", 2)], 1),
        with_collectives(rank(1, **stopped), [started(0, "all_reduce", 1)], 1),
    ]
    (found,) = merged(ranks).differences
    assert found.text == (
        "the record of rank 0 ends inside `all_reduce` of [3] float32 at line 3; "
        "that of rank 1 ends before it, at line 4"
    )
    assert found.ranks == (0, 1)
