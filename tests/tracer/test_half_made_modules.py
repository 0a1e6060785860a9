"""A module whose `__init__` raised before that of `nn.Module` has no parameters, and the report says what raised."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.terminal import to_terminal
from tensorlens.tracer.isolation.module_tree import Limit, module_tensors, named_parts, parameters_of

EARLY = """
import torch
class Early(torch.nn.Module):
    def __init__(self):
        self.kept = None
        torch.ones(1)
        raise ImportError("needs another package")
"""


def test_an_exception_before_the_modules_own_init_is_recorded(warm: Warm, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    library.joinpath("early.py").write_text(EARLY)
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.path.append({str(library)!r})\nfrom early import Early\nEarly()\n")
    trace = warm.traced(script)[1]
    text = to_terminal(Report(trace, diagnose(trace)), RenderOptions(width=120))
    assert "could not be recorded" not in text
    assert "needs another package" in text
    assert trace.script.failure is not None


def test_the_parts_of_a_module_are_those_of_pytorch() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.LSTM(2, 2), torch.nn.Linear(2, 2)))
    net.append(net[0])
    assert list(named_parts(net)) == list(net.named_modules())
    assert [id(parameter) for parameter in parameters_of(net)] == [id(parameter) for parameter in net.parameters()]
    with pytest.warns(DeprecationWarning, match="deprecated"):
        scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    assert [path for path, _ in named_parts(scripted)] == [path for path, _ in scripted.named_modules()]


def test_a_module_that_is_registered_in_a_part_of_it_is_walked_once() -> None:
    outer, inner = torch.nn.Module(), torch.nn.Linear(2, 2)
    outer.inner, inner.outer = inner, outer
    assert [path for path, _ in module_tensors("net", outer, Limit())] == ["net.inner.weight", "net.inner.bias"]
