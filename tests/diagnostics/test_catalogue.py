"""Every script of the catalogue that was ever explained down to its marked lines still is."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue.scoring import SCRIPTS, marks, reasons, recorded, score
from support.releases import skip_if_different
from support.warm import Warm

from tensorlens.records.error_messages import entry

RIGHT = [script for script in SCRIPTS if script.stem in recorded()]
AIMS = {1: 1.0, 2: 0.95}  # of the errors and warnings of a tier


@pytest.mark.parametrize("script", RIGHT, ids=lambda script: script.stem)
def test_what_was_right_is_right(script: Path, warm: Warm) -> None:
    result = score(script, warm)
    if not result.right:
        skip_if_different(script, result.entry.code, warm)
    assert result.found
    assert result.missing == ()


def test_the_records_name_scripts() -> None:
    stems = {script.stem for script in SCRIPTS}
    assert recorded() <= stems
    assert set(reasons()) <= stems - recorded()
    assert all(marks(script) for script in SCRIPTS if "observed_here" not in script.read_text())


@pytest.mark.parametrize("tier", AIMS)
def test_the_aims_are_reached(tier: int) -> None:
    stems = [script.stem for script in SCRIPTS if is_aimed_at(script.stem, tier)]
    assert len(recorded().intersection(stems)) >= AIMS[tier] * len(stems)


def test_every_miss_of_the_first_two_tiers_has_a_reason() -> None:
    missed = {script.stem for script in SCRIPTS if any(is_aimed_at(script.stem, tier) for tier in AIMS)} - recorded()
    assert missed <= set(reasons())


def is_aimed_at(stem: str, tier: int) -> bool:
    known = entry(stem.partition("--")[0])
    return known is not None and known.tier == tier and known.kind != "silent"
