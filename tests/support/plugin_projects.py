"""Runs pytest with the plugin on small projects."""

from __future__ import annotations

import importlib.metadata
import textwrap

import pytest
import torch

PLUGIN = "tensorlens.testing.plugin"


# `runpytest_inprocess` forgets the modules that a run imports, and most of PyTorch's can't be imported twice.
_value = torch.ones(1, requires_grad=True)
for _optimizer in (torch.optim.SGD([_value]), torch.optim.Adam([_value])):
    _value.exp().sum().backward()
    _optimizer.step()


def loading() -> tuple[str, ...]:
    """The options that load the plugin: none if the package is installed with its entry point."""
    known = importlib.metadata.entry_points(group="pytest11")
    return () if any(point.value == PLUGIN for point in known) else ("-p", PLUGIN)


GATE = """
    import torch


    class Gate(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score = torch.nn.Linear(3, 3)

        def forward(self, x):
            gate = torch.sigmoid(self.score(x))
            gate.data.mul_(0.5)
            return gate
"""


def project(pytester: pytest.Pytester, test: str, **others: str) -> None:
    """Writes `test_it.py` and further modules."""
    for name, text in {"test_it": test, **others}.items():
        (pytester.path / f"{name}.py").write_text(textwrap.dedent(text).lstrip("\n"))


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Runs pytest in this process."""
    return pytester.runpytest_inprocess(*loading(), "-p", "no:randomly", "--color=no", *args)


def run_apart(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Runs pytest in a process of its own."""
    return pytester.runpytest_subprocess(*loading(), "--color=no", *args)
