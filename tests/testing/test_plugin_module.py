"""The module that pytest imports in every run, and the document about the plugin."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.folders import ROOT
from support.plugin_projects import run_apart

pytest_plugins = "pytester"
DOCUMENT = ROOT / "docs" / "pytest.md"


def loaded_by(code: str) -> set[str]:
    """The modules in memory after running `code` in a fresh interpreter."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(ended.stdout.split("\n")[-2].split())


def test_a_run_without_the_plugin_s_options_loads_one_module_more(pytester: pytest.Pytester) -> None:
    own = {"tensorlens", "tensorlens.records", "tensorlens.records.version", "tensorlens.testing"}
    own |= {"tensorlens.testing.plugin"}
    (pytester.path / "test_it.py").write_text("def test_it(): pass\n")
    pytest_run = "import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', {}])"
    plain, with_it = (
        loaded_by(pytest_run.format(option))
        for option in ("'-p', 'no:tensorlens'", "'-p', 'no:tensorlens', '-p', 'tensorlens.testing.plugin'")
    )
    assert with_it - plain == own
    assert "torch" not in with_it


def test_the_plugin_is_an_entry_point_and_pytest_an_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert '[project.entry-points.pytest11]\ntensorlens = "tensorlens.testing.plugin"\n' in text
    assert re.search(r'^pytest = \["pytest>=', text, re.M)


def documented() -> tuple[dict[str, str], str]:
    """The files of the document's example, and the output that it shows."""
    text = DOCUMENT.read_text("utf-8")
    files = dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", text, re.S))
    shown = re.search(r"```text\n(.*?)```", text, re.S)
    assert shown is not None
    return files, shown[1]


def test_the_documented_output_is_real(pytester: pytest.Pytester) -> None:
    files, shown = documented()
    for name, text in files.items():
        (pytester.path / name).write_text(text)
    printed = "\n".join(run_apart(pytester, "--tensorlens").outlines)
    seconds = r"=+ (1 failed) in \d.*s =+"  # the line is filled up to the width of the terminal
    assert re.sub(seconds, r"\1", shown).strip() in re.sub(seconds, r"\1", printed)
