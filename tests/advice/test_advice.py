"""The advice about each program is at least as good as `scores.json` records."""

from __future__ import annotations

import pytest
from support.daily import rotating
from support.warm import Warm

from advice.judging import Judge
from advice.programs import (
    CASES,
    FIRST_TRY,
    Program,
    catalogue_scripts,
    failing_programs,
    marked_programs,
    page_examples,
    silent_programs,
)
from advice.recording import Recorder
from advice.scores import recorded, score, worse

MARKED = [("cases", program) for program in marked_programs(CASES)]
MARKED += [("first_try", program) for program in marked_programs(FIRST_TRY)]
OTHERS = [("failing", program) for program in failing_programs()]
OTHERS += [("silent", program) for program in silent_programs()]
OTHERS += [("pages", program) for program in page_examples()]
OTHERS += [("catalogue", program) for program in catalogue_scripts()]
KNOWN_HARMFUL = {"tied-by-data"}  # programs with a harmful help: to be emptied, never to grow
SAMPLE = [*rotating(4, MARKED), *rotating(3, OTHERS)]


def _id(value: tuple[str, Program]) -> str:
    return f"{value[0]}-{value[1].name}"


@pytest.fixture(scope="module")
def judge(warm: Warm, recorder: Recorder) -> Judge:
    return Judge(warm, recorder)


@pytest.mark.parametrize("wanted", SAMPLE, ids=_id)
def test_the_advice_is_no_worse_than_recorded(wanted: tuple[str, Program], judge: Judge) -> None:
    group, program = wanted
    assert worse(recorded()[group][program.name], score(judge.judge(program))) == []


def test_no_recorded_help_is_harmful() -> None:
    scores = recorded()
    assert {name for group in scores.values() for name, found in group.items() if found.get("harmful")} <= KNOWN_HARMFUL


def test_correct_programs_stay_quiet() -> None:
    assert [name for name, found in recorded()["cases"].items() if found.get("quiet") is False] == []


def test_every_program_is_recorded() -> None:
    scores = recorded()
    assert [_id(wanted) for wanted in (*MARKED, *OTHERS) if wanted[1].name not in scores.get(wanted[0], {})] == []
