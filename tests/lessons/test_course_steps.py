"""A lesson line by line: what is shown after a statement is what the lesson, cut off there, ends with."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from support.daily import first_daily
from support.warm import Warm

from tensorlens.lessons.bundled import Lesson, lessons
from tensorlens.lessons.course.steps import Step, TensorState, steps
from tensorlens.records.model import Call, Trace
from tensorlens.render.report.headline import script_file

LESSONS = lessons()

# `copy.deepcopy(x)` and `torch.autograd.grad(...)[0]` give a name when nothing of torch is called
UNNAMED = {"clone-write": 1, "data-write": 1}

Row = tuple[str, str, str, str]  # requires_grad, grad_fn, version, grad


def stepped(warm: Warm, script: Path) -> tuple[Trace, tuple[Step, ...]]:
    _, trace = warm.traced(script)
    return trace, steps(trace, script_file(trace))


def at_the_end(trace: Trace) -> dict[str, Row]:
    """Returns the meaning of each name at the end of a run, from the tensors that were alive then."""
    states = {state.tensor: state for state in trace.end.states}
    rows = {}
    for binding in trace.end.bindings:
        state = states[binding.tensor]
        none = "None" if state.is_leaf or state.retains_grad else "not a leaf"
        rows[binding.name] = (
            "yes" if state.requires_grad else "no",
            state.grad_fn or ("leaf" if state.is_leaf else ""),
            "none" if state.version is None else str(state.version),
            state.grad or none,
        )
    return rows


def row(state: TensorState) -> Row:
    return state.requires_grad, state.grad_fn, state.version, state.grad


def partition(pairs: dict[str, object]) -> set[frozenset[str]]:
    """The names by what they share."""
    groups: dict[object, set[str]] = defaultdict(set)
    for name, storage in pairs.items():
        groups[storage].add(name)
    return {frozenset(names) for names in groups.values()}


@pytest.mark.parametrize("lesson", first_daily(LESSONS), ids=lambda lesson: str(lesson.name))
def test_each_step_is_what_the_lesson_cut_off_there_ends_with(lesson: Lesson, warm: Warm, tmp_path: Path) -> None:
    source = lesson.path.read_text(encoding="utf-8")
    _, found = stepped(warm, lesson.path)
    ends = {statement.end_lineno for statement in ast.parse(source).body}
    compared = 0
    for step in found:
        if step.last not in ends:
            continue
        script = tmp_path / lesson.path.name
        script.write_text("\n".join(source.splitlines()[: step.last]) + "\n", encoding="utf-8")
        _, cut = warm.traced(script)
        meant = at_the_end(cut)
        shown = {state.name: row(state) for state in step.tensors if state.name in meant}
        assert shown == {name: meant[name] for name in shown}, f"line {step.last}"
        met = {state.tensor for event in cut.events if isinstance(event, Call) for state in event.states}
        aliases: dict[int, set[str]] = defaultdict(set)
        for binding in cut.end.bindings:
            aliases[binding.tensor].add(binding.name)
        unnamed = [names for tensor, names in aliases.items() if tensor in met and not names & shown.keys()]
        assert len(unnamed) <= UNNAMED.get(lesson.name, 0), f"line {step.last}: {unnamed}"
        places = {state.tensor: state.storage for state in cut.end.states}
        storages = {
            b.name: places[b.tensor] or cut.tensors[b.tensor].storage for b in cut.end.bindings if b.name in shown
        }
        assert partition({s.name: s.storage for s in step.tensors if s.name in shown}) == partition(dict(storages))
        compared += len(shown)
    assert compared


CAUGHT = """\
import torch
a = torch.ones(2, requires_grad=True)
out = a.exp()
try:
    out.sum().backward()
    said = "ran"
    print(said)
except RuntimeError as error:
    said = str(error)
with torch.no_grad():
    print("nothing is written before the next line")
    a.zero_()
out.detach().zero_()
try:
    out.sum().backward()
    said = "ran"
except RuntimeError as error:
    said = str(error)
#: said != "ran"
if a.requires_grad:
    b = a * 2
else:
    b = None
grad = None
c = torch.ones(2)
print(c.sum())
grad = c
for start in (a, a.detach()):
    try:
        start.sum().backward()
        said = "ran"
    except RuntimeError as error:
        said = str(error)
torch.ones(2).sum().backward()
print("never")
"""


def test_what_did_not_run_is_no_step(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "caught.py"
    script.write_text(CAUGHT, encoding="utf-8")
    _, found = stepped(warm, script)
    lines = [step.first for step in found]
    assert [line for line in range(4, 19) if line in lines] == [5, 6, 7, 10, 11, 12, 13, 15, 18]
    assert 21 in lines
    assert 23 not in lines, "the other branch"
    assert {31, 33} <= set(lines), "one round raises, the other does not"
    assert lines[-1] == 34
    (step,) = (step for step in found if step.claims)
    assert step.first == 18, "the claim on the second try is shown after what ran of it"


def test_a_step_shows_nothing_that_comes_later(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "caught.py"
    script.write_text(CAUGHT, encoding="utf-8")
    _, found = stepped(warm, script)
    after = {step.first: {state.name: state for state in step.tensors} for step in found}
    assert [after[line]["a"].version for line in (10, 11, 12)] == ["0", "0", "1"]
    assert "grad" not in after[26]
    assert after[26]["c"].version == "0"
    assert not any(name.endswith(".grad") for names in after.values() for name in names)


def test_what_a_function_did_is_shown_only_at_the_call_that_did_it(tmp_path: Path, warm: Warm) -> None:
    script = tmp_path / "twice.py"
    script.write_text(
        "import torch\n\n\ndef double(x):\n    y = x * 2\n    return y.sum()\n\n\n"
        "a = torch.ones(2, requires_grad=True)\nfirst = double(a)\nwith torch.no_grad():\n    second = double(a)\n"
    )
    _, found = stepped(warm, script)
    by_line = {step.first: step for step in found}
    assert not any("not recorded" in fact.text for fact in by_line[10].facts)
    assert "y" not in {state.name for step in found for state in step.tensors}
