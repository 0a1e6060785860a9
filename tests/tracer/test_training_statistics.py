"""Checks what `trace(training=True)` measures: gradients, movement and groups of the parameters."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import tensorlens
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import MeasuredTraining, measured_training
from tensorlens.records.invariants import validate
from tensorlens.records.model import Gap
from tensorlens.records.training import MOST_NORMS
from tensorlens.session import Session
from tensorlens.tracer.training.parameter_statistics import MeasuredParameter
from tensorlens.tracer.training.steady_steps import FoundParameter, SteadySteps

Loss = Callable[[int], torch.Tensor]


def train(optimizer: torch.optim.Optimizer, loss: Loss, steps: int, touch: Callable[[], object] = lambda: 0) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss(step).backward()
        touch()
        optimizer.step()


def measured(lens: Session) -> MeasuredTraining:
    trace = lens.trace()
    assert validate(trace) == []
    assert [event for event in trace.events if isinstance(event, Gap)] == []
    training = measured_training(TraceIndex(trace))
    assert training is not None
    return training


def test_norms_zeros_and_movement_are_those_of_the_run() -> None:
    weight = nn.Parameter(torch.tensor([3.0, 4.0, 0.0]))
    data = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.5)
        train(optimizer, lambda step: (weight * data[step]).sum(), 2)
    training = measured(lens)
    (row,) = training.rows
    assert row.statistics is not None
    assert row.movement is not None
    assert (row.statistics.rounds, row.statistics.filled, row.statistics.zero) == (2, 2, 0)
    assert row.statistics.norms == pytest.approx((1.0, 2.0))
    assert row.statistics.zeros == pytest.approx(4 / 6)
    assert row.movement.size == pytest.approx(5.0)
    assert row.movement.distance == pytest.approx((0.25 + 1.0) ** 0.5)
    assert (row.movement.elements, row.movement.unreached, row.movement.unreached_moved) == (3, 1, 0)
    assert row.causes == ("gradient",)
    (group,) = training.groups
    assert (group.name, group.steps, group.rates, group.parameters) == ("SGD", 2, (0.5, 0.5), (row.tensor,))


def test_weight_decay_moves_what_no_gradient_reached() -> None:
    weight = nn.Parameter(torch.ones(4))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.1, weight_decay=0.5)
        train(optimizer, lambda _: weight[:3].sum(), 3)
    (row,) = measured(lens).rows
    assert row.movement is not None
    assert (row.movement.unreached, row.movement.unreached_moved) == (1, 1)
    assert row.causes == ("gradient", "decay")


def test_a_leaf_that_no_optimizer_holds_is_measured_after_backward() -> None:
    held, left_out = nn.Linear(2, 2), nn.Linear(2, 1)
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.Adam(held.parameters())
        train(optimizer, lambda _: left_out(held(torch.ones(1, 2))).sum(), 3)
    training = measured(lens)
    without = [row for row in training.rows if row.group is None]
    assert sorted(row.name for row in without) == ["left_out.bias", "left_out.weight"]
    for row in without:
        assert row.statistics is not None
        assert (row.statistics.rounds, row.statistics.filled) == (3, 3)
        assert not row.has_moved
    assert {row.group.momentum for row in training.rows if row.group is not None} == {0.9}


def test_zeros_are_counted_where_steps_are_not_measured_together() -> None:
    parameter = MeasuredParameter(0, weakref.ref(nn.Parameter(torch.ones(2))))
    counted = []
    for number in range(1, 400):
        is_next = parameter.rounds_before_count == 0
        before = parameter.statistics(0).zeros
        parameter.note(torch.tensor([0.0, 1.0]) if number % 2 else torch.ones(2), 1.0)
        if is_next:
            counted.append(number)
        else:
            assert parameter.statistics(0).zeros == before
    assert counted == [*range(1, 9), *range(16, 129, 8), *range(192, 400, 64)]
    assert parameter.statistics(0).zeros == 4 / (2 * len(counted))


def test_many_rounds_keep_a_bounded_number_of_norms() -> None:
    weight = nn.Parameter(torch.ones(1))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.0)
        train(optimizer, lambda step: (weight * (step + 1)).sum(), 5 * MOST_NORMS)
    (row,) = measured(lens).rows
    assert row.statistics is not None
    assert row.statistics.rounds == 5 * MOST_NORMS
    assert MOST_NORMS // 2 <= len(row.statistics.norms) <= MOST_NORMS
    assert list(row.statistics.norms) == sorted(row.statistics.norms)
    assert row.statistics.norms[-1] <= 5 * MOST_NORMS


def test_the_node_that_passes_only_zeros_on_is_found() -> None:
    score, value = nn.Linear(4, 1), nn.Linear(4, 4)
    data = torch.randn(8, 4)
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([*score.parameters(), *value.parameters()], lr=0.1)
        train(optimizer, lambda _: (torch.softmax(score(data), 1) * value(data)).square().mean(), 3)
    training = measured(lens)
    zero = {row.name for row in training.rows if row.is_zero}
    assert zero == {"score.weight", "score.bias"}
    zeroed = training.facts.trace.inspection.zeroed
    assert {each.node for each in zeroed} == {"SoftmaxBackward0"}
    assert {training.facts.name(each.tensor) for each in zeroed} == zero


def test_gradients_that_are_not_finite_are_counted() -> None:
    weight = nn.Parameter(torch.zeros(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        train(optimizer, lambda _: weight.sqrt().sum(), 2)
    (row,) = measured(lens).rows
    assert row.statistics is not None
    assert row.statistics.nonfinite == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_other_dtypes(dtype: torch.dtype) -> None:
    weight = nn.Parameter(torch.ones(3, dtype=dtype))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.5)
        train(optimizer, lambda _: weight.abs().sum(), 2)
    (row,) = measured(lens).rows
    assert row.statistics is not None
    assert row.movement is not None
    assert row.statistics.norms == pytest.approx((3**0.5,) * 2, rel=1e-2)
    assert row.movement.distance == pytest.approx(3**0.5, rel=1e-2)


def test_sparse_gradients() -> None:
    table = nn.Embedding(5, 2, sparse=True)
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
        train(optimizer, lambda _: table(torch.tensor([1, 1])).sum(), 2)
    (row,) = measured(lens).rows
    assert row.movement is not None
    assert (row.movement.elements, row.movement.unreached) == (10, 8)


def test_the_training_is_unchanged() -> None:
    def run(training: bool = False) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 1))
        data = torch.randn(6, 3)
        with tensorlens.trace(training=training):
            optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
            train(optimizer, lambda _: model(data).square().mean(), 5)
        return [*(p.detach() for p in model.parameters()), *(p.grad for p in model.parameters() if p.grad is not None)]

    for plain, under in zip(run(), run(training=True), strict=True):
        assert torch.equal(plain, under)


def test_a_step_with_a_closure_moves_from_the_values_before_it() -> None:
    weight = nn.Parameter(torch.full((2,), 3.0))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.LBFGS([weight], lr=1.0)

        def loss() -> float:
            optimizer.zero_grad()
            value = weight.square().sum()
            value.backward()
            return float(value.detach())

        optimizer.step(loss)
    (row,) = measured(lens).rows
    assert row.movement is not None
    assert row.statistics is not None
    assert row.statistics.rounds == 1
    assert row.movement.size == pytest.approx(18**0.5)
    assert row.movement.distance == pytest.approx(float((weight.detach() - 3).norm()))


def test_learning_rates_and_turns_of_optimizers() -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 1)
    with tensorlens.trace(training=True) as lens:
        first = torch.optim.SGD(one.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.ExponentialLR(first, 0.5)
        for _ in range(3):
            other(one(torch.ones(1, 2))).sum().backward()
            first.step()
            schedule.step()
        second = torch.optim.SGD(first.param_groups)
        second.step()
    groups = measured(lens).groups
    assert [group.course for group in groups] == [(1.0, 0.5, 0.25), (0.125,)]
    assert [group.turns for group in groups] == [(1, 3), (4, 4)]
    assert [group.is_shared for group in groups] == [False, True]


def test_an_optimizer_without_a_learning_rate() -> None:
    class Still(torch.optim.Optimizer):
        def __init__(self, weights: list[nn.Parameter]) -> None:
            super().__init__(weights, {})

        def step(self, closure: object = None) -> None:  # type: ignore[override]
            pass

    with tensorlens.trace(training=True) as lens:
        optimizer = Still([nn.Parameter(torch.ones(1))])
        optimizer.step()
    (group,) = measured(lens).groups
    assert all(rate != rate for rate in (*group.rates, *group.course))


def test_the_first_gradient_that_is_not_finite_is_counted() -> None:
    weight = nn.Parameter(torch.ones(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.0)
        train(optimizer, lambda step: weight.sum() * (float("inf") if step in (2, 3) else 1.0), 5)
    (row,) = measured(lens).rows
    assert row.statistics is not None
    assert (row.statistics.nonfinite, row.statistics.first_nonfinite) == (2, 3)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_steps_that_are_measured_together_say_the_same(
    optimizer: type[torch.optim.Optimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts() -> tuple[Any, ...]:
        torch.manual_seed(0)
        net, table, late = (
            nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)),
            nn.Embedding(9, 2),
            nn.Linear(2, 1),
        )
        data, words = torch.randn(6, 3), torch.arange(60) % 7

        def loss(step: int) -> torch.Tensor:
            out = net(data) + table(words[step : step + 3]).sum()
            scale = 0.0 if step == 21 else float("inf") if step == 36 else 1.0
            value: torch.Tensor = (late(out) if step > 27 else out).square().mean() * scale
            return value

        with tensorlens.trace(training=True) as lens:
            one = optimizer([*net.parameters(), *table.parameters()], lr=1e-3)  # type: ignore[call-arg]
            other = optimizer([*net.parameters(), *late.parameters()], lr=1e-3)  # type: ignore[call-arg]
            train(one, loss, 40, touch=other.step)
        inspection = lens.trace().inspection
        return inspection.groups, inspection.statistics, inspection.moved, inspection.nonfinite

    together = same_step_by_step(facts, monkeypatch)
    assert any(each.rounds == 40 for each in together[1])
    assert "nan" in repr(together) or "inf" in repr(together)


def same_step_by_step(facts: Callable[[], tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Measures a run, and again step by step. Returns the facts, if they are the same."""
    found: list[tuple[Any, ...]] = []
    for after in (SteadySteps.after, lambda *_: None):
        monkeypatch.setattr(SteadySteps, "after", after)
        found.append(facts())
    for one, other in zip(*found, strict=True):
        assert [repr(each) for each in one] == [repr(each) for each in other]
    return found[0]


def test_what_steps_count_besides_is_the_same_if_they_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    steady: list[bool] = []
    noted = SteadySteps.note

    def noting(self: SteadySteps, found: list[FoundParameter]) -> bool:
        steady.append(noted(self, found))
        return steady[-1]

    monkeypatch.setattr(SteadySteps, "note", noting)

    def facts() -> tuple[Any, ...]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        gate, norm = nn.Linear(2, 2), nn.BatchNorm1d(3).requires_grad_(False)
        rare = nn.Linear(2, 2)
        data = torch.randn(6, 3)

        def loss(step: int) -> torch.Tensor:
            if step == 20:
                net.eval()
                with torch.no_grad():
                    net(data)  # and the model stays in eval mode
            out = net(norm(data))
            is_open = 12 < step < 35
            value: torch.Tensor = (out + (gate(out) if is_open else gate(out) * 0.0)).square().mean()
            if step % 20 < 15:
                value = value + rare(out).square().mean()
            return value

        with tensorlens.trace(training=True) as lens:
            one = torch.optim.AdamW([{"params": net.parameters()}, {"params": gate.parameters()}], lr=1e-3)
            other = torch.optim.SGD(rare.parameters(), lr=1e-3)
            schedule = torch.optim.lr_scheduler.StepLR(one, 10)
            for step in range(60):
                one.zero_grad()
                other.zero_grad()
                loss(step).backward()
                one.step()
                other.step()
                schedule.step()
        inspection = lens.trace().inspection
        zeroed = [(each.tensor, each.node) for each in inspection.zeroed]  # the sequence numbers are others
        counted = inspection.groups, inspection.evaluating, inspection.frozen_statistics, inspection.of_zeros
        return *counted, zeroed, inspection.on_zeros, inspection.statistics, inspection.moved, inspection.schedules

    together = same_step_by_step(facts, monkeypatch)
    assert sum(steady) > 40
    groups = {(each.optimizer, each.group): each for each in together[0]}
    assert set(groups[1, 0].found) == {45}
    assert set(groups[0, 0].found) == {60}
    assert all(together)  # each kind of fact is there
