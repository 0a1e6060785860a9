"""Every sentence of the story and every cell of the tensor table of random programs, against a plain run.

A few programs every day, and many with `-m complete`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.random_programs import program, truth
from support.story_truth import Check, wrong_counts, wrong_rows
from support.warm import Warm

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.story import Row, story
from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.analysis.training.run_summary import run_summary
from tensorlens.records.model import Trace

EVERY_DAY, COMPLETE = 20, 1500
SEEDS = st.integers(0, 1_000_000)


def wrong(warm: Warm, source: str, script: Path) -> list[str]:
    """Returns what a report of the program says that is not so."""
    script.write_text(source, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = truth(source)
    _, trace = warm.traced(script)
    table = tensor_table(trace, names_of(trace))
    rows = _rows(trace)
    found = list(wrong_counts({line: row.count for line, row in rows.items()}, real.runs))
    if not any(row.name.endswith(" tensors)") for row in table.rows):
        found += wrong_rows(table.rows, real.end, moved=".data = " in source)
    for line, runs in real.runs.items():
        facts = rows[line].facts if line in rows else ()
        text = source.splitlines()[line - 1].strip()
        for fact in facts:
            reasons = [list(Check(run).wrong(fact)) for run in runs]
            if all(reasons):  # of many runs, the last of each kind is shown
                found.append(f"line {line}: {text}\n    {fact.name}: {fact.text} {fact.more}\n    {reasons[-1]}")
        if "= f(" not in text and not text.endswith(".grad"):  # the lines of the function show what the call does
            left_out = Check(runs[-1]).left_out(facts, real.end)
            found += [f"line {line}: {text}\n    left out: {change}" for change in left_out]
    return found


def _rows(trace: Trace) -> dict[int, Row]:
    return {row.line: row for section in story(trace, names_of(trace)) for row in section.rows}


def _check(warm: Warm, seed: int, folder: Path) -> None:
    source = program(seed)
    found = wrong(warm, source, folder / "program.py")
    assert not found, "\n".join([source, *found])


@settings(max_examples=EVERY_DAY, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_the_story_of_a_random_program_is_true(warm: Warm, tmp_path: Path, seed: int) -> None:
    _check(warm, seed, tmp_path)


@pytest.mark.complete
@settings(max_examples=COMPLETE, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_the_story_of_any_random_program_is_true(warm: Warm, tmp_path: Path, seed: int) -> None:
    _check(warm, seed, tmp_path)


@pytest.mark.parametrize("false", ["v0 -> v2", "b changes too", "MulBackward0"])
def test_a_false_sentence_is_found(warm: Warm, tmp_path: Path, false: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import torch\na = torch.ones(3)\nb = a[:]\nc = torch.ones(3, requires_grad=True).exp()\na.add_(1)\n"
    assert wrong(warm, source, tmp_path / "program.py") == []
    texts = {
        "v0 -> v2": ("v0 -> v1", "v0 -> v2"),
        "b changes too": ("b changes too", "b changes too, its version stays"),
    }
    old, new = texts.get(false, ("ExpBackward0", "MulBackward0"))
    original = story

    def changed(*args: object) -> object:
        def edit(text: str) -> str:
            return text.replace(old, new)

        from dataclasses import replace

        return [
            replace(
                section,
                rows=tuple(
                    replace(
                        row,
                        facts=tuple(replace(f, text=edit(f.text), more=tuple(map(edit, f.more))) for f in row.facts),
                    )
                    for row in section.rows
                ),
            )
            for section in original(*args)  # type: ignore[arg-type]
        ]

    monkeypatch.setattr(f"{__name__}.story", changed)
    assert wrong(warm, source, tmp_path / "program.py")


def test_programs_are_varied() -> None:
    """No kind of statement is left out of the programs because it always raises."""
    sources = "\n".join(program(seed) for seed in range(25))
    for part in (".backward(", "no_grad", "for i in", "opt.step()", "net(", ".add_(1)", ".detach()", "def f(", ".data"):
        assert part in sources, part


def test_the_summary_counts_the_steps_of_random_programs(warm: Warm, tmp_path: Path) -> None:
    for seed in range(8):
        source = program(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real = truth(source)
        script = tmp_path / "program.py"
        script.write_text(source, encoding="utf-8")
        summary = run_summary(warm.traced(script)[1])
        lines = source.splitlines()
        counted = {
            part: sum(len(runs) for line, runs in real.runs.items() if part in lines[line - 1])
            for part in (".backward(", "autograd.grad(", "optim.", "opt.step()")
        }
        assert summary.backward_passes == counted[".backward("] + counted["autograd.grad("]
        assert (summary.optimizers, summary.optimizer_steps) == (counted["optim."], counted["opt.step()"])
