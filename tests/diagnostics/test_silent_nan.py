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
