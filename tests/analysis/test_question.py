"""Asks about tensors of small runs: each sentence of an answer is a fact, and what is not known is not said."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

import tensorlens
from tensorlens.analysis.question.called_tensors import CalledTensors
from tensorlens.analysis.question.loss_paths import path_to_root
from tensorlens.analysis.question.memory_users import sharers, writes_to
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.why import answer
from tensorlens.errors import UsageError
from tensorlens.records.answer import Answer, Topic
from tensorlens.records.model import Backward, Trace
from tensorlens.render.answer_text import render_answer

pytestmark = pytest.mark.filterwarnings("ignore")


def said(found: Answer, topic: Topic) -> list[str]:
    return [each.text for each in found.statements if each.topic == topic]


def reason(trace: Trace, name: str) -> str:
    """Returns the only reason why a tensor has no gradient."""
    found = answer(trace, name)
    assert found.tensor is not None
    assert found.tensor.gradient in ("none", "not kept")
    (text,) = said(found, "reason")
    return text


def test_a_leaf_that_no_operation_uses() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        unused = torch.ones(2, requires_grad=True)
        x.sum().backward()
    assert "autograd recorded no operation that uses it" in reason(session.trace(), "unused")
    assert unused.grad is None


def test_no_pass_at_all() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y = (x * 2).sum()
    assert reason(session.trace(), "x") == "no `backward()` has run"
    assert y.requires_grad


def test_a_pass_for_other_tensors() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2, requires_grad=True)
        (x * y).sum().backward(inputs=[y])
    assert "asked only for other tensors, with `inputs=`" in reason(session.trace(), "x")


def test_a_gradient_that_is_returned() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2, requires_grad=True)
        torch.autograd.grad((x**2).sum(), x)
        y.sum().backward()
    texts = said(answer(session.trace(), "x"), "reason")
    assert texts[0].startswith("`torch.autograd.grad()` (line ")
    assert not any("does not use" in text for text in texts)


def test_a_use_after_the_last_pass() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        torch.ones(2, requires_grad=True).sum().backward()
        y = x.exp()
    assert "`x.exp()`" in reason(session.trace(), "x")
    assert "is the first to use it, after the last backward pass" in reason(session.trace(), "x")
    assert y.requires_grad


def test_a_result_that_no_loss_uses() -> None:
    with tensorlens.trace(training=True) as session:
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        side = x.exp()
        loss = w.sum()
        loss.backward()
    text = reason(session.trace(), "x")
    assert text.startswith("`loss` (line ")
    assert "does not use what `x.exp()`" in text
    assert side.requires_grad


def cut_by_detach(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).detach()


def cut_by_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * 2


def cut_by_number(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x.sum().item())


def cut_by_rounding(x: torch.Tensor) -> torch.Tensor:
    return x.argmax().float()


@pytest.mark.parametrize("cut", [cut_by_detach, cut_by_no_grad, cut_by_number, cut_by_rounding])
def test_the_path_ends_where_the_value_leaves_the_graph(cut: object) -> None:
    with tensorlens.trace(training=True) as session:
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        loss = (w * cut(x)).sum()  # type: ignore[operator]
        loss.backward()
    texts = said(answer(session.trace(), "x"), "reason")
    lines = [each.lines for each in answer(session.trace(), "x").statements if each.topic == "reason"]
    first = cut.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert first < lines[0][0].line <= first + 2, texts
    assert "`loss` (line " in texts[0]


def test_a_gradient_that_was_cleared() -> None:
    with tensorlens.trace(training=True) as session:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.zero_grad()
    assert reason(session.trace(), "model.weight").startswith("`optimizer.zero_grad()` (line ")
    found = answer(session.trace(), "model.weight")
    assert said(found, "optimizer")[0].endswith("no step, lr 0.1")


def test_a_pass_after_the_clearing_that_leads_elsewhere() -> None:
    with tensorlens.trace(training=True) as session:
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        x.sum().backward()
        x.grad = None
        w.sum().backward()
    texts = said(answer(session.trace(), "x"), "reason")
    assert "`x.grad = ...`" in texts[0]
    assert texts[1].startswith("the backward pass since then gives it none")


def test_a_hook_that_clears_the_gradient_during_the_pass() -> None:
    def step(parameter: torch.Tensor) -> None:
        optimizer.step()
        parameter.grad = None

    with tensorlens.trace(training=True) as session:
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        w.register_post_accumulate_grad_hook(step)
        loss = (w * 2).sum()
        loss.backward()
    text = reason(session.trace(), "w")
    assert text.startswith("`parameter.grad = ...` (line ")
    assert "set it to None during the backward pass (line " in text


def test_a_parameter_that_another_one_replaced() -> None:
    def train() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            if number == 0:
                old.append(model.weight)
                model.weight = nn.Parameter(model.weight.detach() * 2)

    old: list[torch.Tensor] = []
    with tensorlens.trace(training=True) as session:
        train()
    trace = session.trace()
    texts = said(answer(trace, "old[0]"), "reason")
    assert texts[0].endswith("put another tensor in its place, as `weight`")
    found = answer(trace, "model.weight")  # the new one, whatever else was called so
    assert found.tensor is not None
    assert found.called == 2
    assert found.tensor.gradient == "set"


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0], None


def test_a_function_that_gives_one_input_no_gradient() -> None:
    with tensorlens.trace(training=True) as session:
        x, scale = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        for _ in range(2):
            loss = Scaled.apply(x, scale).sum()  # type: ignore[no-untyped-call]
            loss.backward()
    text = reason(session.trace(), "scale")
    assert text.startswith("`Scaled.apply(x, scale)` (line ")
    assert "is on its path to `loss`" in text
    assert text.endswith("and gives it no gradient")


def test_a_module_lists_what_it_holds_and_not_what_expressions_read() -> None:
    with tensorlens.trace(training=True) as session:
        model = nn.BatchNorm1d(2)
        model.weight.data.mul_(2)
    members = answer(session.trace(), "model").members
    names = [each.name.removeprefix("model.") for each in members]
    assert names == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def test_a_tensor_that_is_frozen() -> None:
    with tensorlens.trace(training=True) as session:
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        x.requires_grad_(False)
        (x * w).sum().backward()
    assert reason(session.trace(), "x").startswith("it does not require grad since `x.requires_grad_(False)` (line ")


def test_whole_numbers() -> None:
    with tensorlens.trace(training=True) as session:
        index = torch.arange(3)
    assert reason(session.trace(), "index") == "it can't require grad: its dtype is int64"
    assert index.numel() == 3


def test_a_computed_tensor_keeps_none_unless_it_is_asked_to() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y, z = x * 2, x * 3
        z.retain_grad()
        (y + z).sum().backward()
    assert reason(session.trace(), "y").startswith("it is no leaf: `x * 2`")
    kept = answer(session.trace(), "z")
    assert kept.tensor is not None
    assert (kept.tensor.gradient, kept.tensor.gradient_text) == ("set", "[1, 1]")
    assert said(kept, "reason") == []


def test_a_failed_pass() -> None:
    with contextlib.suppress(RuntimeError), tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        y.sum().backward()
    assert "leads to it, and failed: RuntimeError: one of the variables" in reason(session.trace(), "x")
    found = answer(session.trace(), "y")
    assert "-> `ExpBackward0`" in said(found, "holders")[-1]


@pytest.mark.parametrize(("factor", "state"), [(0.0, "zero"), (1.0, "set"), (float("inf"), "not finite")])
def test_the_state_of_a_gradient(factor: float, state: str) -> None:
    with tensorlens.trace(training=True) as session:
        small, large = torch.ones(2, requires_grad=True), torch.ones(20, requires_grad=True)
        (small.sum() * factor + large.sum() * factor).backward()
    found = answer(session.trace(), "small")
    assert found.tensor is not None
    assert found.tensor.gradient == state
    assert said(found, "reason") == []
    big = answer(session.trace(), "large").tensor
    assert big is not None
    assert big.gradient == ("set" if state == "not finite" else state)  # its values at the end are not recorded
    assert any("infinite or NaN in 1 of 1" in text for text in said(found, "gradient")) == (state == "not finite")


def test_zeros_that_a_call_filled_in() -> None:
    with tensorlens.trace() as session:
        x = torch.ones(20, requires_grad=True)
        x.sum().backward()
        assert x.grad is not None
        x.grad.zero_()
    found = answer(session.trace(), "x.grad")
    assert found.tensor is not None
    assert (found.about, found.tensor.gradient) == ("gradient", "zero")
    assert any("filled with zeros by `x.grad.zero_()`" in text for text in said(found, "gradient"))
    assert [text.partition(" (")[0] for text in said(found, "writes")] == ["`x.grad.zero_()`"]
    assert said(found, "reason") == []


def test_zeros_of_a_run_that_measured_nothing() -> None:
    with tensorlens.trace() as session:
        x = torch.ones(2, requires_grad=True)
        (x * 0).sum().backward()
    assert "`explain --training` looks for it" in said(answer(session.trace(), "x"), "reason")[0]


def test_writes_through_an_alias_and_past_the_version() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.zeros(3)
        view = x[1:]
        view.add_(1)
        x.data.mul_(2)
        other = torch.zeros(3)
        other.add_(1)
    facts = TraceIndex(session.trace())
    number = CalledTensors(facts).tensors("x")[-1]
    assert len(writes_to(facts, number)) == 2
    texts = said(answer(session.trace(), "x"), "writes")
    assert texts[0].endswith("through `view`, v0 -> v1")
    assert texts[1].endswith("its own version stays")
    assert [facts.name(each) for each in sharers(facts, number)] == ["view"]
    assert len(said(answer(session.trace(), "other"), "writes")) == 1


def test_the_path_to_a_loss_is_at_most_eight_lines() -> None:
    with tensorlens.trace(training=True) as session:
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        y = y * 2
        y = y * 3
        y = y * 4
        y = y * 5
        y = y * 6
        y = y * 7
        y = y * 8
        y = y * 9
        loss = y.sum()
        loss.backward()
    path = said(answer(session.trace(), "x"), "path")
    assert len(path) == 8
    assert path[4] == "... 4 more lines ..."
    assert path[-1].endswith("`loss.backward()`")
    facts = TraceIndex(session.trace())
    (backward,) = facts.backwards
    calls = path_to_root(facts, CalledTensors(facts).tensors("x")[-1], backward)
    assert [call.op for call in calls] == ["Tensor.mul"] * 9 + ["Tensor.sum"]


def test_a_path_that_does_not_exist() -> None:
    with tensorlens.trace() as session:
        x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        (x.detach() * w).sum().backward()
    facts = TraceIndex(session.trace())
    assert path_to_root(facts, CalledTensors(facts).tensors("x")[-1], facts.backwards[0]) == []
    assert said(answer(session.trace(), "x"), "losses") == []


def test_a_loop_variable_means_the_last_tensor() -> None:
    with tensorlens.trace() as session:
        for factor in range(3):
            out = torch.ones(2) * factor
    found = answer(session.trace(), "out")
    assert found.called == 3
    assert "3 tensors were called so" in render_answer(found)
    assert out.sum() == 4


def test_what_a_long_run_lacks_is_not_denied() -> None:
    with tensorlens.trace() as session:
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2)
        torch.ones(2, requires_grad=True).sum().backward()
    trace = session.trace()
    (at,) = [place for place, event in enumerate(trace.events) if isinstance(event, Backward)]
    folded = replace(trace, events=trace.events[:at] + trace.events[at + 1 :], inspection=replace(trace.inspection))
    last = replace(folded.events[-1], index=folded.events[-1].index + 5)
    folded = replace(folded, events=(*folded.events[:-1], last))
    texts = [each.text for each in answer(folded, "x").statements]
    assert any("not all of its calls are kept" in text for text in texts)
    assert not any("has run" in text or "never" in text or "recorded no operation" in text for text in texts)
    assert "it does not require grad" in [each.text for each in answer(folded, "y").statements]
    assert x.grad is None
    assert y.grad is None


def every_name(trace: Trace) -> Iterator[str]:
    yield from {binding.name for binding in trace.end.bindings}


def test_every_name_of_a_run_has_an_answer_in_every_form() -> None:
    with tensorlens.trace(training=True) as session:
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            loss = model(torch.randn(4, 2)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    trace = session.trace()
    for name in (*every_name(trace), "model", "model[0]"):
        for at in ("", str(trace.sites[trace.events[-1].site or 0].span.line)):
            for form in ("table", "markdown", "json"):
                assert render_answer(answer(trace, name, at), form)


@pytest.mark.parametrize(
    ("name", "hint"), [("modle.weight", "`model.weight`"), ("model.wieght.grad", "`model.weight.grad`")]
)
def test_close_names(name: str, hint: str) -> None:
    with tensorlens.trace() as session:
        model = nn.Linear(2, 1)
    assert model.weight.grad is None
    with pytest.raises(UsageError, match=hint):
        answer(session.trace(), name)
