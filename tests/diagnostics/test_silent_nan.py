"""Gradients that are infinite or NaN where the loss is finite: which operation has no finite derivative."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

import tensorlens
from tensorlens.tracer.saved_tensors import nonfinite_derivatives

UNSELECTED = {
    "where, on a line of its own": """
        import torch
        x = torch.tensor([0.0, 4.0, 9.0], requires_grad=True)
        shifted = x - 0.0  # value_made_here
        root = shifted.sqrt()  # graph_built_here
        safe = torch.where(shifted > 0, root, torch.zeros(3))
        safe.sum().backward()  # needed_here
        """,
    "a mask of zeros and ones": """
        import torch
        x = torch.tensor([0.0, 4.0], requires_grad=True)  # value_made_here
        y = x.log().clamp(min=-100) * torch.tensor([0.0, 1.0])  # graph_built_here
        y.sum().backward()  # needed_here
        """,
    "division": """
        import torch
        n = torch.tensor([0.0, 2.0], requires_grad=True)  # value_made_here
        mean = torch.where(n > 0, torch.ones(2) / n, torch.zeros(2))  # graph_built_here
        mean.sum().backward()  # needed_here
        """,
}

MASKED = """
        import torch
        net = torch.nn.Linear(3, 4)
        allowed = torch.tensor([True, True, False, True])
        scores = net(torch.ones(2, 3)).masked_fill(~allowed, float("-inf"))
"""
UNSELECTED |= {
    f"the entropy of masked choices, {name}": f"""{MASKED}
        logp = torch.log_softmax(scores, 1)  # value_made_here
        terms = {product}  # graph_built_here
        loss = logp[:, 0].mean() + {left}
        loss.backward()  # needed_here
        """
    for name, product, left in (
        ("where", "logp.exp() * logp", "torch.where(allowed, terms, torch.zeros(4)).sum()"),
        ("where, negated", "torch.mul(logp, scores.softmax(1))", "torch.where(~allowed, 0.0, -terms).sum()"),
        ("masked_fill", "scores.softmax(1) * logp", "terms.masked_fill(~allowed, 0.0).sum()"),
        ("an index", "logp.exp() * logp", "terms[allowed.expand(2, 4)].sum()"),
        ("masked_select", "logp.exp() * logp", "terms.masked_select(allowed).sum()"),
        ("nan_to_num", "logp.exp() * logp", "torch.nan_to_num(terms).sum()"),
        ("nansum", "logp.exp() * logp", "torch.nansum(terms)"),
    )
}


@pytest.mark.parametrize("program", UNSELECTED)
def test_a_branch_that_was_not_selected_spoils_the_gradient(program: str, run: Run) -> None:  # noqa: F811
    expect(run, "nan-gradient-from-unselected-branch", UNSELECTED[program])


BOUNDARY = {
    "a distance of zero, in a net": """
        import torch
        net = torch.nn.Linear(2, 2)
        x = torch.ones(3, 2)
        gap = net(x) - net(x)  # value_made_here
        distance = gap.pow(2).sum(1).sqrt()  # graph_built_here
        distance.mean().backward()  # needed_here
        """,
    "a fractional power": """
        import torch
        x = torch.zeros(2, requires_grad=True)  # value_made_here
        (grad,) = torch.autograd.grad((x ** 0.5).sum(), x)  # graph_built_here, needed_here
        """,
    "equal eigenvalues": """
        import torch
        a = torch.eye(3, requires_grad=True)  # value_made_here
        values, vectors = torch.linalg.eigh(a)  # graph_built_here
        vectors.sum().backward()  # needed_here
        """,
    "a scale of masked scores": """
        import torch
        scale = torch.ones(1, requires_grad=True)
        logp = torch.log_softmax(torch.tensor([[0.5, float("-inf")]]), 1)  # value_made_here
        weights = torch.softmax(logp * scale, 1)  # graph_built_here
        (weights * torch.tensor([1.0, 2.0])).sum().backward()  # needed_here
        """,
    "an angle of zero": """
        import torch
        x = torch.ones(10, requires_grad=True)  # value_made_here
        angles = x.acos()  # graph_built_here
        angles.sum().backward()  # needed_here
        """,
}


@pytest.mark.parametrize("program", BOUNDARY)
def test_a_derivative_that_is_not_finite_is_found(program: str, run: Run) -> None:  # noqa: F811
    found = expect(run, "infinite-or-nan-gradient-at-boundary", BOUNDARY[program])
    assert "nan" in str(found.evidence["gradient"]) or "inf" in str(found.evidence["gradient"])


HARMLESS = {
    "made safe before": """
        import torch
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        inside = torch.where(x > 0, x, torch.ones(2))
        torch.where(x > 0, inside.sqrt(), torch.zeros(2)).sum().backward()
        print(x.grad)
        """,
    "no gradient comes back": """
        import torch
        x, w = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
        (w * x.detach().sqrt() + (x + 1).sqrt()).sum().backward()
        print(w.grad, x.grad)
        """,
    "in evaluation": """
        import torch
        x = torch.zeros(2, requires_grad=True)
        with torch.no_grad():
            print(x.sqrt(), 1 / x)
        (x * 2).sum().backward()
        """,
    **{
        f"masked choices, {name}": f"""{MASKED}
        logp = torch.log_softmax({scores}, 1)
        terms = {terms}
        (logp[:, 0].mean() + torch.where(allowed, terms, torch.zeros(4)).sum()).backward()
        print(net.weight.grad)
        """
        for name, scores, terms in (
            ("where twice", "scores", "logp.exp() * torch.where(allowed, logp, torch.zeros(4))"),
            ("a finite fill", "scores.clamp(min=-1e9)", "logp.exp() * logp"),
            ("nan_to_num before", "scores", "logp.exp() * torch.nan_to_num(logp)"),
            ("entr of a constant", "scores", "torch.special.entr(logp.detach().exp())"),
            ("a constant weight", "scores", "logp.exp().detach() * logp"),
        )
    },
    "NaN in data that is left out before": """
        import torch
        net = torch.nn.Linear(3, 1)
        x = torch.tensor([[1.0, float("nan"), 2.0], [1.0, 2.0, 3.0]])
        known = ~x.isnan()
        scale = torch.ones(3, requires_grad=True)
        filled = torch.where(known, x, torch.zeros(2, 3))
        torch.log_softmax(net(filled * scale), 0).sum().backward()
        print(net.weight.grad, scale.grad)
        """,
    "a factor that gets no gradient": """
        import torch
        w = torch.ones(3, requires_grad=True)
        logp = torch.log_softmax(torch.tensor([0.5, 1.0, float("-inf")]), 0)
        with torch.no_grad():
            print((w * logp).sum())
        (w * logp.exp()).sum().backward()
        print(w.grad)
        """,
    "a norm with a derivative": """
        import torch
        x = torch.zeros(2, requires_grad=True)
        torch.linalg.vector_norm(x).backward()
        print(x.grad, (x + 1).pow(2).sum().sqrt())
        """,
}


@pytest.mark.parametrize("program", HARMLESS)
def test_a_finite_gradient_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS[program])


def test_a_graph_of_harmless_operations_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("nothing in this graph has a derivative that may not be finite")

    monkeypatch.setattr(nonfinite_derivatives, "nodes_of", refuse)
    session = tensorlens.trace()
    with session:
        x = torch.ones(3, requires_grad=True)
        ((x**2 / 3).tanh() @ x.relu()).backward()
        optimizer = torch.optim.Adam([x])
        optimizer.step()
        (x * x).sum().backward()
    assert not [event for event in session.trace().events if "derivatives" in getattr(event, "reason", "")]


def test_looking_changes_nothing() -> None:
    state = torch.get_rng_state()
    with tensorlens.trace():
        x = torch.zeros(2, requires_grad=True)
        y = x.sqrt().sum()
        y.backward(retain_graph=True)
        first = x.grad
        assert first is not None
        sequence = torch._C._autograd._get_sequence_nr()
        y.backward(retain_graph=True)
        assert torch._C._autograd._get_sequence_nr() == sequence
    assert torch.equal(torch.get_rng_state(), state)
    assert x.grad is first


@pytest.mark.parametrize(
    ("line", "help_"),
    [
        ("torch.where(x > 0, x.sqrt(), torch.zeros(2))", "`torch.where(x > 0, x, 1.0)`"),
        ("torch.where(x <= 0, torch.zeros(2), x.sqrt())", "`torch.where(x <= 0, 1.0, x)`"),
        ("torch.where(x > 0, x.sqrt(), 0.0)", "`torch.where(x > 0, x, 1.0)`"),
        ("torch.where(x > 0, torch.acos(1 - x), 0.0)", "`torch.where(x > 0, 1 - x, 0.0)`"),
    ],
)
def test_harmless_values_go_where_the_selection_leaves_the_result_out(line: str, help_: str, run: Run) -> None:  # noqa: F811
    text = f"""
        import torch
        x = torch.tensor([0.0, 0.5], requires_grad=True)  # value_made_here
        y = {line}  # graph_built_here
        y.sum().backward()  # needed_here
        """
    (fix,) = expect(run, "nan-gradient-from-unselected-branch", text).fixes
    assert help_ in fix.title
    assert fix.place is not None
    assert fix.place.line == 3


def test_a_product_gets_finite_values_where_its_terms_are_left_out(run: Run) -> None:  # noqa: F811
    program = """
        import torch
        net = torch.nn.Linear(3, 4)
        allowed = torch.tensor([True, True, False, True])
        scores = net(torch.ones(2, 3)).masked_fill(~allowed, float("-inf"))
        logp = torch.log_softmax(scores, 1)  # value_made_here
        terms = torch.where(allowed, logp.exp() * logp, 0.0)  # graph_built_here
        terms.sum().backward()  # needed_here
        """
    found = expect(run, "nan-gradient-from-unselected-branch", program)
    assert "some elements of `logp`" in found.explanation
    (fix,) = found.fixes
    assert "`torch.where(allowed, logp, 0.0)` in place of `logp`" in fix.title
    assert [edit.text for edit in fix.edits] == ["torch.where(allowed, logp, 0.0)"]


def test_a_product_is_not_named_where_an_operation_before_it_is_the_cause(run: Run) -> None:  # noqa: F811
    program = """
        import torch
        p = torch.tensor([0.0, 1.0], requires_grad=True)  # value_made_here
        logs = p.log()  # graph_built_here
        torch.where(p > 0, p * logs, torch.zeros(2)).sum().backward()  # needed_here
        """
    assert "`log()`" in expect(run, "nan-gradient-from-unselected-branch", program).explanation


def test_a_log_softmax_is_a_risk_where_its_scores_may_be_masked() -> None:
    x, mask = torch.ones(2, 3, requires_grad=True), torch.tensor([True, False, True])
    is_risky = nonfinite_derivatives.RISKS[torch.log_softmax]
    assert is_risky((x.masked_fill(mask, float("-inf")), 1), {})
    assert is_risky((torch.where(mask, x, float("-inf")), 1), {})
    assert not is_risky((x @ torch.ones(3, 4), 1), {})
