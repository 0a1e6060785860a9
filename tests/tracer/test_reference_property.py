"""Random small programs of views, changes in place, writes past the version counters and backward calls: where the lens
says nothing, every gradient is the one that the saved values give; where one is not, it names a line that wrote."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.invariants import validate

EXAMPLES = 40
LEAVES = (
    "a = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)",
    "b = torch.tensor([1.5, 0.25, -0.75], dtype=torch.float64, requires_grad=True)",
)
RESULTS = ("{0} * {1}", "{0} * 2", "{0}.sin()", "{0}.exp()", "{0} + {1}", "{0}.square()", "{0}.tanh()", "{0}.clone()")
VIEWS = ("{0}.view(3)", "{0}[:]", "{0}.flatten()", "{0}.view(1, 3)[0]")
IN_PLACE = ("{0}.add_(1)", "{0}.mul_(0.5)", "{0}[1] = 3.0")
UNTRACKED = ("{0}.data.add_(1)", "{0}.data[0] = 4.0", "{0}.detach().numpy()[2] = 0.25", "{0}.data.mul_(-1)")
BEYOND = {"no-grad-write-not-in-gradient"}  # a change that was never recorded is in no gradient of either run
BACKWARD = "{0}.sum().backward(retain_graph=True)"


@dataclass(frozen=True)
class Program:
    lines: tuple[str, ...]
    writing: frozenset[int]  # the lines that write past a version counter

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    lines, names, writing = ["import torch", *LEAVES, "c = a * b"], ["a", "b", "c"], set()
    for number in range(draw(st.integers(2, 8))):
        kind = draw(st.sampled_from(("result", "result", "view", "in place", "untracked", "untracked", "backward")))
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        if kind in ("result", "view"):
            form = draw(st.sampled_from(RESULTS if kind == "result" else VIEWS))
            lines.append(f"t{number} = {form.format(one, other)}")
            names.append(f"t{number}")
        elif kind == "in place":
            lines.append(draw(st.sampled_from(IN_PLACE)).format(draw(st.sampled_from(names[2:]))))
        elif kind == "untracked":
            lines.append(draw(st.sampled_from(UNTRACKED)).format(one))
            writing.add(len(lines))
        else:
            lines.append(BACKWARD.format(one))
    lines.append(BACKWARD.format(names[-1]))
    return Program(tuple(lines), frozenset(writing))


@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(program=programs())
def test_what_is_not_told_is_right(program: Program, warm: Warm) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(program.text)
        ran, trace = warm.compared(script)
    assert validate(trace) == []
    reference = trace.reference
    assert reference is not None
    if ran.returncode != 0:  # a change in place that autograd refused
        assert any(found.severity == "error" for found in diagnose(trace))
    elif not reference.differences:
        assert reference.reason == ""
        assert not any(note.startswith("compared: ") for found in diagnose(trace) for note in found.notes)
        assert {found.code for found in diagnose(trace) if found.severity == "warning"} <= BEYOND
    if reference.differences:
        proven = [found for found in diagnose(trace) if any(note.startswith("compared: ") for note in found.notes)]
        assert proven
        named = {label.span.line for found in proven for label in found.labels if label.role == "modified_here"}
        assert named & program.writing
