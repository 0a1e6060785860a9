"""A line is named as the cause only if the recorded facts leave no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.first_help import Programs, lines_of
from support.warm import Warm

from tensorlens.records.report import Diagnostic

HEAD = "import torch\nfrom torch import nn\n"
Find = Callable[[str], Diagnostic]


@pytest.fixture
def found(warm: Warm, tmp_path: Path) -> Find:
    """Runs a program and returns its first finding."""
    return Programs(warm, tmp_path, HEAD).first


def test_two_lines_that_detached_tensors_are_both_labelled(found: Find) -> None:
    finding = found(
        """
        x = torch.ones(3, requires_grad=True)
        a, b = x * 2, x * 3
        loss = (a * a).sum() + (b * b).sum()
        a.detach_()
        b.detach_()
        loss.backward()
        """
    )
    assert finding.code == "saved-tensor-detached-inplace"
    assert sorted(lines_of(finding, "modified_here")) == [7, 8]


def test_two_memories_with_the_versions_of_a_checkpoint_leave_the_line_open(found: Find) -> None:
    program = """
        from torch.utils.checkpoint import checkpoint
        w = torch.ones(3, requires_grad=True)
        a, b = torch.ones(3), torch.ones(3)
        loss = checkpoint(lambda t: {}, a, use_reentrant=False)
        b.add_(1)
        a.add_(1)
        loss.backward()
        """
    named = found(program.format("(t * w).sum()"))
    assert named.title.startswith("`a.add_(1)` overwrote `t`")
    unnamed = found(program.format("(t * w).sum() + (b * w).sum()"))
    assert lines_of(unnamed, "modified_here") == []
    assert "`b.add_(1)`" not in unnamed.title


def test_a_write_in_the_closure_is_no_write_of_the_step(found: Find) -> None:
    finding = found(
        """
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.LBFGS([w])

        def closure():
            optimizer.zero_grad()
            loss = w.pow(3).sum()
            with torch.no_grad():
                w.clamp_(-1, 1)
            loss.backward()
            return loss

        optimizer.step(closure)
        """
    )
    (label,) = [label for label in finding.labels if label.role == "modified_here"]
    assert (label.span.line, label.text) == (11, "overwritten here")
    assert finding.fixes[0].title.startswith("move lines 10 to 11 below line 12")


def test_the_layer_and_the_way_back_are_labelled(found: Find) -> None:
    finding = found(
        """
        cell = nn.GRUCell(2, 3)
        optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
        h = torch.zeros(1, 3)
        for _ in range(3):
            h = cell(torch.ones(1, 2), h)
            optimizer.zero_grad()
            h.sum().backward(retain_graph=True)
            optimizer.step()
        """
    )
    (label,) = [label for label in finding.labels if label.role == "graph_built_here"]
    assert (label.span.line, label.text) == (8, "`h` leads back to an earlier pass")
    finding = found(
        """
        body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))
        x = torch.ones(2, 3, requires_grad=True).sigmoid()
        (body(x).sum() + x.sum()).backward()
        """
    )
    assert lines_of(finding, "modified_here") == [6, 4]
    assert finding.fixes[0].title == "let sigmoid keep a copy of its result: no value changes"
