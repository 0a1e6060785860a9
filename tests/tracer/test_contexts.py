"""Special modes, the runs of checkpointed functions and what changed between them, as the tracer records them."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from support.recording import traced
from torch import nn
from torch.utils.checkpoint import checkpoint

import tensorlens
from tensorlens.analysis.contexts import changes_between_runs, failed_backward, last_recomputed_checkpoint, open_region
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Change, GradMode, Region, Trace
from tensorlens.tracer.frames import bytecode
from tensorlens.tracer.frames.captured_state import CapturedState


def regions(trace: Trace) -> list[tuple[str, bool]]:
    return [(event.name, event.entering) for event in trace.events if isinstance(event, Region)]


def text_at(trace: Trace, site: int | None) -> str:
    assert site is not None
    return trace.sources[trace.sites[site].span.file].splitlines()[trace.sites[site].span.line - 1].strip()


def anomaly() -> None:
    with torch.autograd.set_detect_anomaly(True):
        pass


def hooks() -> None:
    with torch.autograd.graph.save_on_cpu():
        pass


def disabled() -> None:
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        pass


def dual() -> None:
    with forward_ad.dual_level():
        pass


def autocast() -> None:
    with torch.autocast("cpu"):
        pass


def vmap() -> None:
    torch.vmap(torch.sin)(torch.ones(2))


def grad() -> None:
    torch.func.grad(torch.sum)(torch.ones(2))


def jvp() -> None:
    torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (anomaly, "detect_anomaly"),
        (hooks, "save_on_cpu"),
        (disabled, "disable_saved_tensors_hooks"),
        (dual, "dual_level"),
        (autocast, "autocast"),
        (vmap, "func.vmap"),
        (grad, "func.grad"),
        (jvp, "func.jvp"),
    ],
)
def test_a_mode_is_entered_and_left(program: Callable[[], None], kind: str) -> None:
    trace = traced(program)
    assert regions(trace) == [(kind, True), (kind, False)]
    assert open_region(TraceIndex(trace), len(trace.events)) is None


def test_transforms_inside_each_other_have_a_region_each() -> None:
    trace = traced(lambda: torch.vmap(torch.func.grad(torch.sum))(torch.ones(3, 2)))
    assert [name for name, entering in regions(trace) if entering] == ["func.vmap", "func.grad"]


def test_anomaly_mode_switched_on_stays_open() -> None:
    def program() -> None:
        torch.autograd.set_detect_anomaly(True)

    try:
        trace = traced(program)
    finally:
        torch.autograd.set_detect_anomaly(False)
    entered = open_region(TraceIndex(trace), len(trace.events), "detect_anomaly")
    assert entered is not None
    assert text_at(trace, entered.site) == "torch.autograd.set_detect_anomaly(True)"


def test_what_torch_enters_for_itself_is_no_region() -> None:
    x = torch.ones(2, requires_grad=True)
    trace = traced(lambda: checkpoint(torch.sin, x, use_reentrant=False).sum().backward())
    assert {kind for kind, _ in regions(trace)} == {"checkpoint", "recomputation"}


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_recomputation_knows_its_checkpoint(reentrant: bool) -> None:
    def program() -> None:
        x = torch.ones(2, requires_grad=True)
        first = checkpoint(torch.sin, x, use_reentrant=reentrant)
        second = checkpoint(torch.cos, first, use_reentrant=reentrant)
        second.sum().backward()

    trace = traced(program)
    found = [event for event in trace.events if isinstance(event, Region) and event.entering]
    assert [event.name for event in found] == ["checkpoint", "checkpoint", "recomputation", "recomputation"]
    assert [event.checkpoint for event in found[2:]] == [found[1].index, found[0].index]
    assert not [event for event in trace.events if isinstance(event, Change)]
    assert trace.failures == ()


STATE: dict[str, Any] = {"keep": 2}


def clipped(value: torch.Tensor) -> torch.Tensor:
    return value[: STATE["keep"]].exp().sum()


def test_what_a_checkpoint_reads_is_compared_and_its_change_found() -> None:
    def program() -> None:
        STATE["keep"] = 2
        x = torch.ones(3, requires_grad=True)
        y = checkpoint(clipped, x, use_reentrant=False)
        STATE["keep"] = 3
        y.backward()

    trace = traced(program)
    facts = TraceIndex(trace)
    failure = trace.failures[-1]
    opened = last_recomputed_checkpoint(facts, failure)
    assert opened is not None
    (change,) = changes_between_runs(facts, opened, failure.index)
    assert (change.name, change.before, change.after) == ("STATE['keep']", "2", "3")
    assert text_at(trace, change.site) == 'STATE["keep"] = 3'
    backward = failed_backward(facts, failure)
    assert backward is not None
    assert text_at(trace, backward.site) == "y.backward()"


def test_a_module_switched_to_evaluation_is_found() -> None:
    def program() -> None:
        net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
        y = checkpoint(net, torch.ones(1, 2, requires_grad=True), use_reentrant=False)
        net.eval()
        y.sum().backward()

    found = [event for event in traced(program).events if isinstance(event, Change)]
    trace = traced(program)
    assert {(change.name, change.before, change.after) for change in found} == {
        (f"Sequential.{path}training", "True", "False") for path in ("", "0.", "1.")
    }
    assert {text_at(trace, e.site) for e in trace.events if isinstance(e, Change)} == {"net.eval()"}


def test_a_checkpoint_keeps_nothing_alive_longer() -> None:
    def block(value: torch.Tensor) -> torch.Tensor:
        return value.sin()

    def program() -> None:
        x = torch.ones(2, requires_grad=True)
        y = checkpoint(block, x, use_reentrant=False)
        alive = weakref.ref(y)
        y.sum().backward()
        del y
        gc.collect()
        assert alive() is None

    session = tensorlens.trace()
    with session:
        program()


def test_the_values_of_a_failing_expression_lead_to_where_they_were_bound() -> None:
    def made() -> list[int]:
        return [1, 2]

    def convert(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, requires_grad=True)

    def program() -> None:
        whole = made()
        convert(whole)

    trace = traced(program)
    (value,) = trace.failures[-1].values
    assert (value.name, value.type) == ("values", "list")
    assert text_at(trace, value.site) == "whole = made()"


def test_a_generator_that_was_used_up_is_told() -> None:
    def program() -> None:
        parameters = nn.Linear(2, 1).parameters()
        print(len(list(parameters)), file=sys.stderr)
        torch.optim.SGD(parameters, lr=0.1)

    trace = traced(program)
    types = {value.type: value for value in trace.failures[-1].values}
    assert "exhausted generator" in types
    assert text_at(trace, types["generator"].used).startswith("print(")


def test_names_read_and_bound() -> None:
    namespace: dict[str, Any] = {}
    source = "a = [1]\nb = (a,\n     a)\nb[0].append(a)\nc = b.count(\n    a)\n"
    code = compile(source, "example.py", "exec")
    exec(code, namespace)
    calls = [i for i in bytecode.instructions(code) if i.opname == "CALL" and i.positions]
    last = calls[-1]
    assert bytecode.names_read_by(code, last.offset).keys() == {"a", "b"}
    bound = bytecode.last_binding(code, "b", last.offset)
    lines = {i.offset: i.positions.lineno for i in bytecode.instructions(code) if i.positions}
    assert bound is not None
    assert lines[bound] == 2
    assert bytecode.last_binding(code, "unknown", last.offset) is None
    assert {lines[offset] for offset in bytecode.writes_to(code, "a")} == {1}
    assert {lines[offset] for offset in bytecode.writes_to(code, "b")} == {2}


def test_a_method_that_changes_a_container_writes_to_it() -> None:
    code = compile("seen = []\nseen.append(1)\nseen.index(1)\nseen[0] = 2\nother[seen[0]] = 1\n", "example.py", "exec")
    lines = {i.offset: i.positions.lineno for i in bytecode.instructions(code) if i.positions}
    assert {lines[offset] for offset in bytecode.writes_to(code, "seen")} == {1, 2, 4}


def test_outside_of_a_module_and_of_a_library_wrapper() -> None:
    net = nn.Sequential(nn.Dropout(0.5))

    def wrapped(value: torch.Tensor) -> Any:
        return net(value)

    for function, name in ((net, "Sequential.0.p"), (wrapped, "net.0.p")):
        before = CapturedState(function, lambda filename: False)
        assert before.read[name].text == "0.5"
        assert before.read[name].attribute == "p"


def test_writes_to_the_items_of_an_attribute() -> None:
    code = compile("self.seen = {}\nself.seen[0] = 1\nself.other[0] = 1\nself.seen.update({})\n", "x.py", "exec")
    lines = {i.offset: i.positions.lineno for i in bytecode.instructions(code) if i.positions}
    assert {lines[offset] for offset in bytecode.writes_to(code, "self", "seen")} == {1, 2, 4}


def test_outside_of_a_module_that_holds_an_object() -> None:
    class Memo:
        def __init__(self) -> None:
            self.tables: dict[int, int] = {}

        def __call__(self, size: int) -> int:
            return self.tables.setdefault(size, size)

    net = nn.Identity()
    net.memo = Memo()  # type: ignore[assignment]
    before = CapturedState(net, lambda filename: filename == __file__)
    assert before.read["len(Identity.memo.tables)"].text == "0"
    net.memo(3)  # type: ignore[operator]
    after = CapturedState(net, lambda filename: filename == __file__)
    assert [name for name, *_ in after.differences(before)] == ["len(Identity.memo.tables)"]
    assert [code.co_name for code in after.codes] == ["__call__"]


def test_outside_of_a_function() -> None:
    limit = [1, 2]
    scale = 2.0

    def inner() -> float:
        return scale

    def outer(value: float) -> float:
        return value * inner() + len(limit)

    before = CapturedState(outer, lambda filename: True)
    limit.append(3)
    scale = 3.0
    now = CapturedState(outer, lambda filename: True)
    found = {name: (old.text, new.text) for name, old, new in now.differences(before)}
    assert found == {"len(limit)": ("2", "3"), "scale": ("2.0", "3.0")}


def entered_twice() -> None:
    with torch.no_grad(), torch.set_grad_enabled(False):
        torch.ones(2)


def test_what_enters_and_leaves_a_block_is_at_the_whole_statement() -> None:
    """Since Python 3.13, its instructions have the position of the manager."""
    trace = traced(entered_twice)
    modes = [event for event in trace.events if isinstance(event, GradMode)]
    spans = [trace.sites[event.site].span for event in modes]
    first = entered_twice.__code__.co_firstlineno + 1
    whole, call = (
        (first, 4, first + 1, 21),
        (first, 26, first, 55),
    )  # only `set_grad_enabled()` switches when it is called
    found = [(span.line, span.column, span.end_line, span.end_column) for span in spans]
    assert found == [whole, call, whole, whole, whole]
