"""Compares what the tracer records with PyTorch's own answers in the same process."""

from __future__ import annotations

import contextlib
import dis
import gc
import threading
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
import pytest
import torch
from support.recording import traced
from torch import nn

import tensorlens
from tensorlens.records.model import Backward, Call, Gap, GradMode, Notice, Trace
from tensorlens.render import render
from tensorlens.tracer.frames.assignment_targets import targets_of
from tensorlens.tracer.frames.call_sites import OUTSIDE
from tensorlens.tracer.recording import ops as ops_


def calls(trace: Trace, op: str = "") -> list[Call]:
    return [event for event in trace.events if isinstance(event, Call) and (not op or event.op == op)]


def test_a_call_has_its_site_inputs_outputs_and_node() -> None:
    def program() -> None:
        a = torch.ones(3, requires_grad=True)
        b = torch.cat([a, a * 2])
        b.sum()

    trace = traced(program)
    made, doubled, joined, total = calls(trace)
    assert [call.op for call in calls(trace)] == ["torch.ones", "Tensor.mul", "torch.cat", "Tensor.sum"]
    assert [access.tensor for access in joined.inputs] == [made.outputs[0].tensor, doubled.outputs[0].tensor]
    state = total.states[0]
    assert (state.requires_grad, state.is_leaf, state.grad_fn) == (True, False, "SumBackward0")
    assert total.nodes[0] <= (state.node or -1) < total.nodes[1]
    span = trace.sites[doubled.site].span
    line = trace.sources[span.file].splitlines()[span.line - 1]
    assert line[span.column : span.end_column] == "a * 2"
    assert trace.sites[made.site].targets == ("a",)


def test_two_calls_on_one_line_have_two_sites() -> None:
    trace = traced(lambda: torch.ones(2).exp().add(torch.ones(2)))
    spans = [trace.sites[call.site].span for call in calls(trace)]
    assert len({(span.column, span.end_column) for span in spans}) == len(spans) == 4


def write(x: torch.Tensor) -> None:
    x.add_(1)


def assign(x: torch.Tensor) -> None:
    x[0] = 5.0


def augment(x: torch.Tensor) -> None:
    x *= 2


def through_view(x: torch.Tensor) -> None:
    x[:1].zero_()


def through_out(x: torch.Tensor) -> None:
    torch.add(torch.ones(2), 1, out=x)


def functional(x: torch.Tensor) -> None:
    nn.functional.relu(x, inplace=True)


def module(x: torch.Tensor) -> None:
    nn.ReLU(inplace=True)(x)


def foreach(x: torch.Tensor) -> None:
    torch._foreach_mul_([x], 2.0)


@pytest.mark.parametrize(
    "change", [write, assign, augment, through_view, through_out, functional, module, foreach], ids=lambda f: f.__name__
)
def test_a_change_in_place_is_seen_whatever_it_goes_through(change: Callable[[torch.Tensor], None]) -> None:
    x = torch.ones(2)
    trace = traced(lambda: change(x))
    moved = [write for call in calls(trace) for write in call.writes]
    assert [(write.before, write.after) for write in moved] == [(0, 1)]
    counters = {trace.tensors[write.tensor].counter for write in moved}
    assert len(counters) == 1
    assert x._version == 1


@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}], ids=str)
def test_an_optimizer_step_is_named_with_each_parameter_it_changed(options: dict[str, bool]) -> None:
    def program() -> None:
        layer = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, **options)
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    trace = traced(program)
    within = [call for call in calls(trace) if call.within == "SGD.step" and call.writes]
    changed = {trace.tensors[write.tensor].type for call in within for write in call.writes}
    assert changed == {"Parameter"}
    assert len({write.tensor for call in within for write in call.writes}) == 2
    made = calls(trace, "optim.SGD")
    assert len(made) == 1
    assert len(made[0].inputs) == 2


def test_a_fused_optimizer_moves_no_version_and_that_is_said() -> None:
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, fused=True)
    layer(torch.ones(1, 2)).sum().backward()
    version = layer.weight._version
    trace = traced(optimizer.step)
    assert layer.weight._version == version  # should a new PyTorch move it, the gap can go
    assert [event.reason for event in trace.events if isinstance(event, Gap)] == [ops_.FUSED]


def test_views_and_detached_tensors_share_a_counter_and_data_does_not() -> None:
    def program() -> None:
        x = torch.ones(4)
        x[:2], x.detach(), x.data, x.clone()

    trace = traced(program)
    made = {call.op: trace.tensors[call.outputs[0].tensor] for call in calls(trace)}
    source = made["torch.ones"]
    assert made["Tensor.__getitem__"].counter == source.counter
    assert made["Tensor.detach"].counter == source.counter
    assert made["Tensor.data.__get__"].counter != source.counter
    assert {made[op].storage for op in made if op != "Tensor.clone"} == {source.storage}
    assert made["Tensor.clone"].storage != source.storage
    assert made["Tensor.__getitem__"].base == source.id


def test_a_storage_that_is_freed_never_lends_its_id_to_another() -> None:
    def program() -> None:
        for _ in range(50):
            torch.ones(1000)

    trace = traced(program)
    storages = [trace.tensors[call.outputs[0].tensor].storage for call in calls(trace)]
    assert len(set(storages)) == 50


def test_gradients_before_and_after_each_backward() -> None:
    def program() -> None:
        a = torch.ones(2, requires_grad=True)
        (a * 2).sum().backward()
        (a * 3).sum().backward()
        b = a * 4
        b.retain_grad()
        b.sum().backward()
        torch.autograd.grad((a * 2).sum(), a)

    passes = [event for event in traced(program).events if isinstance(event, Backward)]
    assert [event.op for event in passes] == ["Tensor.backward"] * 3 + ["autograd.grad"]
    texts = [[(g.before, g.after) for g in event.gradients] for event in passes]
    assert texts[0] == [(None, "[2, 2]")]
    assert texts[1] == [("[2, 2]", "[5, 5]")]
    assert sorted(texts[2], key=str) == [("[5, 5]", "[9, 9]"), (None, "[1, 1]")]
    assert texts[3] == []


def test_grad_mode_switches_of_the_user_and_only_those() -> None:
    @torch.no_grad()
    def decorated() -> torch.Tensor:
        return torch.ones(1) * 2

    def program() -> None:
        decorated()
        with torch.inference_mode():
            torch.ones(1)
        torch.set_grad_enabled(False)
        torch.set_grad_enabled(True)
        optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
        optimizer.step()

    trace = traced(program)
    switches = [event for event in trace.events if isinstance(event, GradMode)]
    told = [(event.cause, event.entering, event.decorator) for event in switches]
    assert told[:2] == [("no_grad", True, True), ("no_grad", False, True)]
    assert told[2:4] == [("inference_mode", True, False), ("inference_mode", False, False)]
    assert [cause for cause, _, _ in told[4:]] == ["set_grad_enabled"] * 2
    line = trace.sites[switches[0].site].span.line
    assert "@torch.no_grad()" in trace.sources[trace.sites[switches[0].site].span.file].splitlines()[line - 1]
    modes = {call.op: call.mode for call in calls(trace)}
    assert modes["Tensor.mul"] == "no_grad"


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def test_what_the_mode_does_not_see_has_its_own_way_in() -> None:
    def program() -> None:
        nn.Parameter(torch.ones(2))
        x = torch.ones(2, requires_grad=True)
        Double.apply(x).sum().backward()  # type: ignore[no-untyped-call]
        torch.ones(2).set_(torch.zeros(2))  # type: ignore[call-overload]
        torch.from_numpy(np.ones(2)).numpy()
        thread = threading.Thread(target=lambda: torch.full((1,), 7.0))
        thread.start()
        thread.join()

    trace = traced(program)
    ops = [call.op for call in calls(trace)]
    for op in (
        "nn.Parameter",
        "Double.apply",
        "ctx.save_for_backward",
        "Tensor.set_",
        "torch.from_numpy",
        "torch.full",
    ):
        assert op in ops
    assert ops.count("Tensor.mul") == 2  # in forward, and in backward while the engine ran it
    gaps = [event for event in trace.events if isinstance(event, Gap)]
    assert [gap.reason for gap in gaps] == [ops_.SHARED_WITH_NUMPY] * 2


def test_a_tensor_on_the_array_of_a_tensor_has_its_storage() -> None:
    def program() -> None:
        whole = torch.ones(4)
        array = whole.numpy()
        torch.from_numpy(array[1:]).add_(1)
        torch.from_numpy(array.copy()).add_(1)

    trace = traced(program)
    made = [call for call in calls(trace) if call.outputs and call.op in ("torch.ones", "torch.from_numpy")]
    first, on_array, copied = (trace.tensors[call.outputs[0].tensor] for call in made)
    assert first.storage == on_array.storage != copied.storage
    assert len({each.counter for each in (first, on_array, copied)}) == 3


def test_a_failed_backward_is_read_while_it_is_warm() -> None:
    def program() -> None:
        a = torch.ones(2, requires_grad=True)
        b = a.exp()
        c = a.sigmoid()
        b.add_(1)
        c.mul_(2)
        (b + c).sum().backward()

    trace = traced(program)
    (failure,) = trace.failures
    assert failure.kind == "saved-tensor-modified-inplace"
    first, second = (saved for saved in failure.saved if saved.problem == "version")
    assert first.message == failure.message
    assert {first.node, second.node} == {"ExpBackward0", "SigmoidBackward0"}
    assert (first.expected, first.found) == (0, 1)
    assert first.sequence > second.sequence


def test_an_exception_at_the_address_of_an_earlier_one_is_another() -> None:
    def program() -> None:
        leaf = torch.ones(2, requires_grad=True)
        for _ in range(5):
            with contextlib.suppress(RuntimeError):
                leaf.mul_(2)
        with contextlib.suppress(RuntimeError):
            leaf.add_(2)

    assert [failure.op for failure in traced(program).failures] == ["Tensor.mul_"] * 5 + ["Tensor.add_"]


def test_a_warning_is_recorded_once_and_names_the_users_line(recwarn: pytest.WarningsRecorder) -> None:
    def program() -> None:
        b = torch.ones(1, requires_grad=True) * 2
        b.grad  # noqa: B018

    trace = traced(program)
    notices = [event for event in trace.events if isinstance(event, Notice)]
    assert len(notices) == 1
    assert notices[0].site is not None
    assert trace.sites[notices[0].site].span.file == __file__
    assert [str(w.filename) for w in recwarn.list] == [__file__]


def test_nothing_is_kept_alive() -> None:
    refs: list[weakref.ref[Any]] = []

    def program() -> None:
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).exp()
        y.sum().backward()
        refs.extend([weakref.ref(x), weakref.ref(y), weakref.ref(x.grad)])
        del x, y
        gc.collect()
        assert [ref() for ref in refs] == [None, None, None]

    session = tensorlens.trace()
    with session:
        program()
    assert len(refs) == 3


def test_swap_tensors_still_works() -> None:
    def program() -> None:
        a, b = torch.zeros(2), torch.ones(2)
        torch.utils.swap_tensors(a, b)
        assert a.tolist() == [1.0, 1.0]
        a.add_(1)

    trace = traced(program)
    assert [call.op for call in calls(trace)][-1] == "Tensor.add_"


@pytest.mark.parametrize("program", [lambda: torch.ones(2).to_sparse(), lambda: torch.ones(2, device="meta") * 2])
def test_tensors_without_a_storage_of_their_own_are_no_trouble(program: Callable[[], object]) -> None:
    assert not [event for event in traced(program).events if isinstance(event, Gap)]


def test_calls_that_no_user_code_made_have_a_place_of_their_own() -> None:
    def program() -> None:
        thread = threading.Thread(target=torch.ones, args=(2,))
        thread.start()
        thread.join()

    trace = traced(program)
    (call,) = calls(trace)
    assert trace.sites[call.site].span.file == OUTSIDE
    assert render(tensorlens.Report(trace)).count("torch.ones") == 0


def test_an_error_on_the_slow_path_has_no_error_of_ours_as_its_context() -> None:
    errors: list[BaseException] = []

    def program() -> None:
        try:
            torch.cat([torch.ones(1), None])  # type: ignore[list-item]
        except TypeError as error:
            errors.append(error)

    traced(program)
    assert [error.__context__ for error in errors] == [None]


def test_a_view_of_no_grad_that_is_written_to_is_recorded() -> None:
    """PyTorch raises when its `is_leaf` is read."""

    def program() -> None:
        weight = nn.Parameter(torch.ones(3, 3))
        nn.init.orthogonal_(weight)
        with torch.no_grad():
            view = weight.view(9)
            view.copy_(torch.zeros(9))
        assert view.requires_grad
        with contextlib.suppress(RuntimeError):
            view.is_leaf  # noqa: B018
            raise AssertionError

    trace = traced(program)
    assert [write.after for call in calls(trace, "Tensor.copy_") for write in call.writes] == [1, 3]
    assert not [event for event in trace.events if isinstance(event, Gap)]


def test_a_leaf_written_under_no_grad_is_recorded_in_that_mode() -> None:
    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        for _ in range(2):
            with torch.no_grad():
                weight.mul_(2)

    modes = [call.mode for call in calls(traced(program)) if call.writes]
    assert modes == ["no_grad", "no_grad"]


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("i, (a, (b, c)) = g()", ("i", "a", "b", "c")),
        ("for i, (a, b) in g(): pass", ("i", "a", "b")),
        ("a, *rest, b = g()", ("a", "*rest", "b")),
        ("self.x, xs[0], xs[k], (xs['a'], y) = g()", ("self.x", "xs[0]", "xs[k]", "xs['a']", "y")),
        ("with g() as (a, b): pass", ("a", "b")),
        ("if (w := g()): pass", ("w",)),
        ("xs[k + 1] = g()", ()),
        ("[a for a, (b, c) in g()]", ("a", "b", "c")),
    ],
)
def test_the_targets_of_a_value_are_read_from_the_bytecode(line: str, targets: tuple[str, ...]) -> None:
    space: dict[str, Any] = {}
    exec(f"def f(g, self, xs, k):\n    {line}\n", space)
    codes = [space["f"].__code__]
    codes += [const for const in codes[0].co_consts if isinstance(const, CodeType)]
    found = {targets_of(code, step.offset) for code in codes for step in dis.get_instructions(code)
             if step.opname in ("CALL", "FOR_ITER", "BEFORE_WITH", "LOAD_SPECIAL")}  # fmt: skip
    assert targets in found
    assert found <= {targets, ()}
