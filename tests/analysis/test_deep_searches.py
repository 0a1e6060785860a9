"""A search through a trace looks at each call once, however often a tensor was written, or a call has many tensors."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

import tensorlens
from tensorlens.analysis.lineage import ancestry, backward_reaches, calls_reached_by, graph_leaves, leads_to
from tensorlens.analysis.states import StateHistory
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.cut_graphs.drawn_constants import drawn_constants
from tensorlens.analysis.training.near_gradients import NearGradients
from tensorlens.analysis.training.summed_terms import losses, reached_by
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Backward, Call, Trace

WRITES = 1_000


def _written_in_place() -> Trace:
    with tensorlens.trace() as run:
        x = torch.ones(3, requires_grad=True)
        y = x * 1
        for _ in range(WRITES):
            y.add_(1)
        z = y.sum()
        torch.autograd.grad(z, [x], retain_graph=True)
        z.backward()
    return run.trace()


def _written_together() -> Trace:
    with tensorlens.trace() as run:
        tensors = [torch.ones(1, requires_grad=True) for _ in range(WRITES)]
        made = torch._foreach_mul(tensors, 2.0)
        z = torch.stack(torch._foreach_add(made, 1.0)).sum()
        z.backward()
    return run.trace()


def _looks(monkeypatch: pytest.MonkeyPatch, search: Callable[[], object]) -> int:
    looks, state = 0, StateHistory.state

    def counted(self: StateHistory, tensor: int, at: int) -> object:
        nonlocal looks
        looks += 1
        return state(self, tensor, at)

    with monkeypatch.context() as patched:
        patched.setattr(StateHistory, "state", counted)
        search()
    return looks


@pytest.mark.parametrize("program", [_written_in_place, _written_together])
def test_a_search_looks_at_each_call_a_few_times(program: Callable[[], Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    facts = TraceIndex(program())
    backward = facts.backwards[-1]
    root, first = backward.roots[0].tensor, facts.calls[0]
    made = list(ancestry(facts, root, backward.index))  # builds the index
    assert len(made) == len(set(made)) >= WRITES
    searches: list[Callable[[], object]] = [
        lambda: graph_leaves(facts, root, backward.index),
        lambda: backward_reaches(facts, backward, first),
        lambda: [calls_reached_by(facts, each) for each in facts.backwards],
    ]
    for search in searches:
        assert 0 < _looks(monkeypatch, search) < 40 * WRITES


def test_the_calls_on_the_way_to_a_requested_tensor_are_those_of_the_whole_pass() -> None:
    facts = TraceIndex(_written_in_place())
    requested, whole = facts.backwards
    assert isinstance(requested, Backward)
    assert requested.inputs
    reached = calls_reached_by(facts, requested)
    assert reached.complete
    assert len(reached.calls) == WRITES + 2
    assert reached.calls == {index for index in calls_reached_by(facts, whole).calls if index < requested.index}


def test_the_calls_that_made_a_value_are_listed_from_the_latest() -> None:
    facts = TraceIndex(_written_in_place())
    (multiplied,) = [call for call in facts.calls if call.op == "Tensor.mul"]
    written = multiplied.outputs[0].tensor
    calls = facts.producers(written, len(facts.events))
    assert len(calls) == WRITES + 1
    assert calls[-1] is multiplied
    assert calls[:2] == [calls[0], calls[1]]
    assert [each.index for each in calls] == sorted((each.index for each in calls), reverse=True)
    assert all(isinstance(each, Call) for each in calls)


@pytest.mark.parametrize("parameters", [2, 300])
def test_an_update_of_many_parameters_in_one_call_is_searched_once(
    parameters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tensorlens.trace() as run:
        weights = [torch.ones(1, requires_grad=True) for _ in range(parameters)]
        torch.stack(weights).square().sum().backward()
        with torch.no_grad():
            scaled = [weight.grad * 0.5 for weight in weights if weight.grad is not None]
            torch._foreach_sub_(weights[1:], scaled[1:])
            torch._foreach_sub_(weights[:1], [torch.ones(1)])
    searches, search = 0, NearGradients._made

    def counted(self: NearGradients, number: int, before: int) -> Iterator[Call]:
        nonlocal searches
        searches += 1
        return search(self, number, before)

    monkeypatch.setattr(NearGradients, "_made", counted)
    training = Training(TraceIndex(run.trace()))
    updates = {
        leaf: [each.fresh for each in moments if each.kind == "update"] for leaf, moments in training.moments.items()
    }
    first = min(updates)
    assert len(updates) == parameters
    assert updates == {leaf: [leaf != first] for leaf in updates}
    assert searches <= 2 * parameters


def _drawn(training: Training) -> object:
    return list(drawn_constants(training))


def test_many_terms_of_a_loss_are_searched_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running sum of terms, and a sum of what one call made: twice the terms take twice the looks."""
    looks: dict[str, list[int]] = {}
    for count in (60, 120):
        with tensorlens.trace() as run:
            parameters: list[torch.Tensor] = [torch.nn.Parameter(torch.ones(1)) for _ in range(count)]
            optimizer = torch.optim.SGD(parameters, lr=0.1)
            for _ in range(2):
                sum((each.square().mean() for each in parameters), torch.zeros(())).backward()
                optimizer.step()
                torch.stack(torch._foreach_add(torch._foreach_mul(parameters, 2.0), 1.0)).sum().backward()
                optimizer.step()
        facts = TraceIndex(run.trace())
        training = Training(facts)
        questions: dict[str, Callable[[], object]] = {
            "terms": partial(losses, facts),
            "draws": partial(_drawn, training),
        }
        for name, question in questions.items():
            looks.setdefault(name, []).append(_looks(monkeypatch, question))
        terms = [term for loss in losses(facts) for one in loss.terms for term in one.terms]
        for term in terms:
            found = graph_leaves(facts, term.tensor, term.added.index)
            assert term.reached == found & reached_by(term.backward)
            assert leads_to(facts, term.tensor, term.added.index, found) == bool(found)
            assert not leads_to(facts, term.tensor, term.added.index, ())
    assert all(few > 0 and many <= 2.5 * few for few, many in looks.values()), looks
