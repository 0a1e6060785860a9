"""A write outside torch is found to its line, in whatever file, by a further run that follows the lines."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.trace_file import dumps, loads
from tensorlens.runner.exact_writes import with_exact_lines

Exact = Callable[..., tuple[Trace, WarmRuns]]
_BEGIN = """
    import ctypes
    import numpy as np
    import torch
    w = torch.ones(3, requires_grad=True)
"""


@pytest.fixture
def exact(warm: Warm, tmp_path: Path) -> Exact:
    """The trace of a program, with exact lines; `helper` is the text of a module that it imports."""

    def run(text: str, helper: str = "") -> tuple[Trace, WarmRuns]:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(_BEGIN).lstrip("\n") + textwrap.dedent(text).lstrip("\n"))
        (tmp_path / "helper.py").write_text(textwrap.dedent(helper).lstrip("\n"))
        runs = WarmRuns(warm, script)
        trace = with_exact_lines(runs, runs.first().trace())
        assert validate(trace) == []
        assert loads(dumps(trace)) == trace
        return trace, runs

    return run


def written(trace: Trace) -> list[str]:
    """Returns the lines that a finding says wrote the memory, as "file:text"."""
    (found,) = [each for each in diagnose(trace) if each.code == "unversioned-write-to-saved-tensor"]
    spans = [label.span for label in found.labels if label.role == "modified_here"]
    return [f"{Path(s.file).name}:{trace.sources[s.file].splitlines()[s.line - 1].strip()}" for s in spans]


HELPER = """
    import numpy as np

    class Environment:
        def __init__(self):
            self.state = np.ones(3, dtype=np.float32)

        def step(self, action):
            drift = self.state * 0.5
            self.state += drift
            return float(self.state.sum())
"""


def test_numpy_in_a_helper_of_another_file(exact: Exact) -> None:
    trace, _ = exact(
        """
        from helper import Environment
        environment = Environment()
        loss = 0.0
        for _ in range(3):
            value = (w * torch.from_numpy(environment.state)).sum()
            loss = loss + value
            reward = environment.step(int(value))
        loss.backward()
        """,
        HELPER,
    )
    assert written(trace) == ["helper.py:self.state += drift"]
    finding = next(each for each in diagnose(trace) if each.code == "unversioned-write-to-saved-tensor")
    assert "line by line" in finding.detail[-1]


def test_numpy_between_lines_that_do_not_write(exact: Exact) -> None:
    trace, _ = exact("""
        array = np.ones(3, dtype=np.float32)
        x = torch.from_numpy(array)
        y = (w * x).sum()
        other = np.zeros(3)
        other += 1
        np.multiply(array, 7, out=array)
        other[0] = 5
        y.backward()
    """)
    assert written(trace) == ["program.py:np.multiply(array, 7, out=array)"]


def test_dlpack(exact: Exact) -> None:
    trace, _ = exact("""
        x = torch.ones(3)
        array = np.from_dlpack(x)
        array.flags.writeable or setattr(array.flags, "writeable", True)
        y = (w * x).sum()
        unused = [i for i in range(3)]
        array[:] = 4
        unused.append(3)
        y.backward()
    """)
    assert written(trace) == ["program.py:array[:] = 4"]


def test_ctypes(exact: Exact) -> None:
    trace, _ = exact("""
        x = torch.ones(3)
        array = x.numpy()
        address = array.ctypes.data
        y = (w * x).sum()
        size = array.nbytes
        ctypes.memset(address, 0, size)
        size += 1
        y.backward()
    """)
    assert written(trace) == ["program.py:ctypes.memset(address, 0, size)"]


def test_every_line_that_writes_in_the_interval(exact: Exact) -> None:
    trace, _ = exact("""
        array = np.ones(3, dtype=np.float32)
        y = (w * torch.from_numpy(array)).sum()
        array[0] = 5
        size = array.size
        array[1] = 6
        y.backward()
    """)
    assert written(trace) == ["program.py:array[0] = 5", "program.py:array[1] = 6"]


def test_only_the_array_that_the_finding_is_about(exact: Exact) -> None:
    trace, _ = exact("""
        array, other = np.ones(3, dtype=np.float32), np.ones(3, dtype=np.float32)
        scale = torch.from_numpy(other)
        y = (w * torch.from_numpy(array)).sum() + scale.sum()
        other[0] = 5
        array[1] = 6
        y.backward()
    """)
    assert written(trace) == ["program.py:array[1] = 6"]


def test_a_run_that_does_not_repeat_itself_keeps_the_vague_lines(exact: Exact, tmp_path: Path) -> None:
    trace, runs = exact("""
        import os
        array = np.ones(3, dtype=np.float32)
        y = (w * torch.from_numpy(array)).sum()
        if os.path.exists("ran"):
            y = y + w.sum() + w.exp().sum()
        open("ran", "w").close()
        array[0] = 5
        y.backward()
    """)
    assert not any(overwrite.exact for overwrite in trace.inspection.overwrites)
    assert runs.made


def test_a_tool_that_follows_lines_itself_is_left_alone(exact: Exact) -> None:
    trace, _ = exact("""
        import sys
        array = np.ones(3, dtype=np.float32)
        seen = []
        sys.settrace(lambda frame, event, arg: seen.append(event))
        y = (w * torch.from_numpy(array)).sum()
        array[0] = 5
        assert sys.gettrace() is not None
        y.backward()
        sys.settrace(None)
    """)
    assert trace.script.outcome == "ok"
    assert not any(overwrite.exact for overwrite in trace.inspection.overwrites)


def test_no_further_run_without_such_a_write(exact: Exact) -> None:
    trace, runs = exact("""
        x = torch.ones(3)
        y = (w * x).sum()
        x.data.mul_(3)
        y.backward()
    """)
    assert [each.way for each in trace.inspection.overwrites] == ["Tensor.data.__get__"]
    assert runs.made == []
