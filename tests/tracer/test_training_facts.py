"""Checks the facts about single steps, hooks and schedulers that a run with `--training` records."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset, Subset, WeightedRandomSampler

import tensorlens
from tensorlens.records.invariants import validate
from tensorlens.records.model import Gap
from tensorlens.records.observations import Observations
from tensorlens.session import Session


def facts_of(lens: Session) -> Observations:
    trace = lens.trace()
    assert validate(trace) == []
    return trace.inspection


def test_steps_on_a_gradient_of_zeros_are_counted() -> None:
    weight = nn.Parameter(torch.full((4,), 2.0))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.1, weight_decay=0.5)
        for step in range(5):
            optimizer.zero_grad()
            weight.sum().backward()
            assert weight.grad is not None
            if step < 3:
                weight.grad.zero_()
            optimizer.step()
    facts = facts_of(lens)
    last = [each for each in facts.on_zeros if each.number == facts.measured[-1].number]
    ((count),) = last
    assert (count.steps, count.moved, count.decayed, count.carried) == (3, 3, 3, 0)
    assert count.distance == pytest.approx(2 * 2 * (1 - 0.95**3))
    noted = [step.index for step in facts.steps][:2]
    assert [each.index for each in facts.of_zeros] == noted


def test_momentum_carries_a_parameter_on() -> None:
    weight = nn.Parameter(torch.ones(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.Adam([weight], lr=0.1)
        for factor in (1.0, 0.0):
            optimizer.zero_grad()
            (weight * factor).sum().backward()
            optimizer.step()
    count = facts_of(lens).on_zeros[-1]
    assert (count.steps, count.moved, count.decayed, count.carried) == (1, 1, 0, 1)


def test_nothing_is_counted_if_nothing_moves() -> None:
    weight = nn.Parameter(torch.ones(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (weight * 0).sum().backward()
            optimizer.step()
    assert facts_of(lens).on_zeros == ()


def test_hooks_are_counted_where_there_are_several() -> None:
    layer = nn.Linear(2, 2)
    with tensorlens.trace(training=True) as lens:
        handles = []
        for _ in range(4):
            handles.append(layer.register_forward_hook(lambda *_: None))
            layer.weight.register_hook(lambda gradient: gradient * 2)
            layer(torch.ones(1, 2)).sum().backward()
        for handle in handles:
            handle.remove()
    facts = facts_of(lens)
    kinds = {each.id: each.kind for each in lens.trace().callbacks.registrations}
    counts = [(kinds[each.registration], each.passes, each.count) for each in facts.hooks]
    assert sorted(counts) == [
        ("forward hook", 2, 2),
        ("forward hook", 4, 4),
        ("tensor hook", 2, 2),
        ("tensor hook", 4, 4),
        ("tensor hook", 4, 4),
    ]


def test_schedulers_and_their_steps_are_counted() -> None:
    weight = nn.Parameter(torch.ones(2))
    with tensorlens.trace(training=True) as lens:
        first, second = torch.optim.SGD([weight], lr=0.1), torch.optim.Adam([weight], lr=0.1)
        one = lr_scheduler.StepLR(first, 2)
        inner = [lr_scheduler.ConstantLR(second), lr_scheduler.ExponentialLR(second, 0.9)]
        both = lr_scheduler.SequentialLR(second, inner, [2])
        for step in range(4):
            weight.sum().backward()
            second.step()
            if step == 0:
                first.step()
            one.step()
            both.step()
    facts = facts_of(lens)
    last = [each for each in facts.schedules if each.number == facts.measured[-1].number]
    own = [(each.name, each.optimizer, each.steps, each.idle) for each in last if not each.is_held]
    assert own == [("StepLR", 0, 4, 3), ("SequentialLR", 1, 4, 0)]
    assert [each.name for each in last if each.is_held] == ["ConstantLR", "ExponentialLR"]


def test_the_schedulers_of_a_run_are_unchanged() -> None:
    def rates() -> list[float]:
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
        inner = [lr_scheduler.LinearLR(optimizer), lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)]
        scheduler, found = lr_scheduler.SequentialLR(optimizer, list(inner), [2]), []
        for _ in range(6):
            optimizer.step()
            scheduler.step()
            found.append(float(optimizer.param_groups[0]["lr"]))
        return found

    plain = rates()
    with tensorlens.trace(training=True):
        traced = rates()
    assert traced == plain


def test_an_index_that_names_places_twice_is_counted() -> None:
    values = torch.zeros(4, 5)
    rows, columns = torch.tensor([0, 1, 1, -1, 1]), torch.tensor([2, 3, 3, 0, 4])
    with tensorlens.trace(training=True) as lens:
        values[rows, columns] = 1.0
        values[rows] = 2.0
        values[rows[:2]] = 3.0
        values[values > 2] = 4.0
        values.index_put_((rows,), torch.ones(5), accumulate=True)
        values.index_put_((rows,), torch.ones(5))
        for _ in range(9):
            values[:, columns] += 1.0
    facts = facts_of(lens)
    counts = [(each.places, each.repeated, each.different) for each in facts.repeated_indices]
    assert counts == [(5, 1, 1), (5, 2, 1), (5, 2, 1), *[(5, 1, 1)] * 5]
    calls = [lens.trace().event(each.index) for each in facts.repeated_indices]
    assert [getattr(call, "op", "") for call in calls[:3]] == [
        "Tensor.__setitem__", "Tensor.__setitem__", "Tensor.index_put_",
    ]  # fmt: skip


def test_the_metric_of_a_plateau_is_recorded() -> None:
    weight = nn.Parameter(torch.ones(2))
    with tensorlens.trace(training=True) as lens:
        optimizer = torch.optim.SGD([weight], lr=1.0)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)
        for value in (3.0, torch.tensor(2.0), 4.0, 1.0):
            weight.sum().backward()
            optimizer.step()
            scheduler.step(value)
    (metric,) = [each for each in facts_of(lens).plateaus if each.number == facts_of(lens).measured[-1].number]
    assert (metric.mode, metric.first, metric.last, metric.steps) == ("max", 3.0, 1.0, 4)
    assert (metric.lows, metric.highs, metric.cuts) == (2, 1, 2)


def test_gradients_inside_a_transform_are_recorded() -> None:
    weights = {"weight": torch.ones(3, 2), "bias": torch.zeros(3)}
    layer = nn.Linear(2, 3)

    def loss(params: dict[str, torch.Tensor]) -> torch.Tensor:
        result: torch.Tensor = torch.func.functional_call(layer, params, (torch.ones(4, 2),))
        return result.square().mean()

    with tensorlens.trace(training=True) as lens:
        for _ in range(4):
            torch.func.grad_and_value(loss)(weights)
    assert not [each for each in lens.trace().events if isinstance(each, Gap)]


def test_the_neighbours_among_the_keys_of_a_sort_are_counted() -> None:
    keys = torch.tensor([1.0, 2.0, 2.0, 0.5, float("nan")])
    with tensorlens.trace(training=True) as lens:
        keys.argsort()
        torch.sort(keys, 0, True)
        torch.sort(keys.view(-1, 1), dim=0, stable=True)
        torch.argsort(keys.view(1, 5).expand(3, 5))
    facts = facts_of(lens)
    assert [(each.along, each.against) for each in facts.sorted_keys] == [(1, 1), (1, 1), (1, 1)]
    calls = [lens.trace().event(each.index) for each in facts.sorted_keys]
    assert [getattr(call, "op", "") for call in calls] == ["Tensor.argsort", "torch.sort", "torch.sort"]


def test_orders_are_taken_twice() -> None:
    with tensorlens.trace(training=True) as lens:
        keys = torch.tensor([[2.0, 0.0, 1.0], [1.0, 0.0, 2.0]])
        torch.sort(keys, dim=1)
        keys.argsort(0)
        torch.arange(6).argsort(descending=True)
        torch.randperm(1)
    found = [(each.axis, each.moved) for each in facts_of(lens).orders_twice]
    assert found == [(1, 3), (0, 0), (0, 0)]


def test_a_state_of_the_generator_is_told_apart_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: torch.Tensor) -> None:
        raise RuntimeError("Numpy is not available")

    monkeypatch.setattr(torch.Tensor, "numpy", missing)
    with tensorlens.trace(training=True) as lens:
        state = torch.get_rng_state()
        torch.rand(2)
        for each in (state, torch.get_rng_state(), state):
            torch.set_rng_state(each)
    first, second, third = (each.state for each in facts_of(lens).seeds)
    assert first == third != second
    assert not [each for each in lens.trace().events if isinstance(each, Gap)]


def test_results_of_bytes_that_are_not_exact_are_counted() -> None:
    one, other = torch.tensor([3, 200, 9], dtype=torch.uint8), torch.tensor([5, 100, 9], dtype=torch.uint8)
    with tensorlens.trace(training=True) as lens:
        for _ in range(2):
            one - other
        one.add(other, alpha=2)
        one.float() - other
        torch.mul(one, 0)
    facts = facts_of(lens).wrapped_around
    counts = [(each.elements, each.wrapped, each.least, each.most) for each in facts]
    assert counts == [(3, 1, -2, 100), (3, 1, -2, 100), (3, 1, 13, 400)]
    calls = [lens.trace().event(each.index) for each in facts]
    assert [getattr(call, "op", "") for call in calls] == ["Tensor.sub", "Tensor.sub", "Tensor.add"]
    assert not [each for each in lens.trace().events if isinstance(each, Gap)]


class _Numbers(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([float(place)]), place % 2


@pytest.mark.parametrize("whole", [_Numbers(), [*map(_Numbers().__getitem__, range(12))]], ids=["a data set", "a list"])
def test_the_samples_of_loaders_are_counted(whole: Any) -> None:
    weight = nn.Parameter(torch.ones(1))
    sampler = WeightedRandomSampler([1.0] * 8 + [3.0] * 4, 40)
    first, second = Subset(whole, range(8)), Subset(whole, [6, 7, 8, 9])
    with tensorlens.trace(training=True) as lens:
        sampler.weights = sampler.weights.clone()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for values, _ in DataLoader(_Numbers(), batch_size=4, sampler=sampler):
            (weight * values).sum().backward()
            optimizer.step()
        for values, _ in DataLoader(first, batch_size=4, shuffle=True):
            (weight * values).sum().backward()
        for _ in DataLoader(second, batch_size=2):
            pass
    facts = facts_of(lens)
    (drawn,) = [each for each in facts.sampled_labels if each.number == facts.measured[-1].number]
    assert (drawn.samples, drawn.counts, drawn.values, drawn.names) == (12, (8, 4), (1.0, 3.0), (0, 1))
    assert len(drawn.drawn) == 4
    assert sum(drawn.drawn) == 40
    (rows,) = [each for each in facts.evaluated_rows if each.number == facts.measured[-1].number]
    assert (rows.samples, rows.trained, rows.evaluated, rows.again) == (10, 8, 4, 2)
    assert not [each for each in lens.trace().events if isinstance(each, Gap)]


class _Broken(_Numbers):
    """Raises at the first sample that is asked for."""

    is_broken = True

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        if self.is_broken:
            self.is_broken = False
            raise ValueError("broken")
        return super().__getitem__(place)


class _Pair(list[Any]):
    def __iter__(self) -> Any:
        raise AssertionError("a look at a batch runs no code of the program")


def test_a_batch_that_raises_is_no_batch_of_samples() -> None:
    weight = nn.Parameter(torch.ones(1))
    sampler = WeightedRandomSampler([1.0, 3.0] * 6, 40)
    with tensorlens.trace(training=True) as lens:
        sampler.weights = sampler.weights.clone()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        rows = iter(DataLoader(_Broken(), batch_size=4, sampler=sampler, collate_fn=_collated))
        with pytest.raises(ValueError, match="broken"):
            next(rows)
        for batch in rows:
            (weight * batch[0]).sum().backward()
            optimizer.step()
    (drawn,) = facts_of(lens).sampled_labels[-1:]
    assert drawn.drawn[1:3] == (0, 0)  # no weight of one label with the other label
    assert sum(drawn.drawn) == 36
    assert not [each for each in lens.trace().events if isinstance(each, Gap)]


def _collated(rows: list[tuple[torch.Tensor, int]]) -> list[torch.Tensor]:
    return _Pair([torch.stack([value for value, _ in rows]), torch.tensor([label for _, label in rows])])
