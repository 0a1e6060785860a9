"""Every script of the catalogue that was ever explained down to its marked lines still is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogue.scoring import SCRIPTS, marks, reasons, recorded, score
from warm import Warm

RIGHT = [script for script in SCRIPTS if script.stem in recorded()]
AIMS = {("error", 1): 1.0, ("warning", 1): 1.0}


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as process:
        yield process


@pytest.mark.parametrize("script", RIGHT, ids=lambda script: script.stem)
def test_what_was_right_is_right(script: Path, warm: Warm) -> None:
    result = score(script, warm)
    assert result.found
    assert result.missing == ()


def test_the_records_name_scripts() -> None:
    stems = {script.stem for script in SCRIPTS}
    assert recorded() <= stems
    assert set(reasons()) <= stems - recorded()
    assert all(marks(script) for script in SCRIPTS if "observed_here" not in script.read_text())
