"""Compares the console blocks of the README and of docs/second-runs.md with the output of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.releases import IS_QUOTED, RELEASE, imports_compute, in_this_release

from tools.readme_output import BLOCK, FILES, output
from tools.report_picture import picture, report

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [block for file in FILES for block in BLOCK.findall(file.read_text(encoding="utf-8"))]


def fits(shown: list[str], real: list[str]) -> bool:
    """Returns whether the lines are the same; "..." in `shown` matches any number of lines."""
    if not shown:
        return not real
    if shown[0] == "...":
        return any(fits(shown[1:], real[start:]) for start in range(len(real) + 1))
    return bool(real) and shown[0] == real[0] and fits(shown[1:], real[1:])


def uncounted(text: str) -> str:
    """Returns a report without its number of calls."""
    return re.sub(r"\b\d+ calls\b", "calls", text)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_output_is_real(command: str, shown: str) -> None:
    real = output(command)
    wanted = in_this_release(shown)
    if not fits(wanted.splitlines(), real.splitlines()):
        if fits(uncounted(wanted).splitlines(), uncounted(real).splitlines()) and imports_compute():
            pytest.skip(
                f"torch {RELEASE}: PyTorch computes while a first optimizer imports it, and more calls are counted"
            )
    assert fits(wanted.splitlines(), real.splitlines()), real


def test_there_is_output() -> None:
    assert len(BLOCKS) >= 4


@pytest.mark.skipif(not IS_QUOTED, reason=f"torch {RELEASE}: the picture shows the release that it was made with")
def test_the_picture_is_of_a_real_run() -> None:
    assert (ROOT / "docs" / "report.svg").read_text(encoding="utf-8") == picture(report())


def test_every_command_is_listed() -> None:
    for command in ("explain", "why", "run", "compare", "errors", "claims", "list", "new", "view", "merge"):
        assert f"| `tensorlens {command}" in README


def test_the_lesson_that_is_shown_is_the_one_that_is_run() -> None:
    assert f"```python\n{(ROOT / 'docs' / 'examples' / 'own_lesson.py').read_text(encoding='utf-8')}```" in README


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
