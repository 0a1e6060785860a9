"""`explain --try` as it is typed: before or after the script, in every form, and with a further run that is stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from support.commands import run_command
from support.folders import DOCS
from support.warm import Ran

FAILS = """\
import torch
x = torch.ones(2, requires_grad=True)
y = torch.sigmoid(x)
y.mul_(3)
print("once", flush=True)
y.sum().backward()
"""
CONFIRMED = "with a copy of what line 3 saved, the run ends normally"
SECOND = """\
import os, signal, sys, time
if os.path.exists("ran"):
    {action}
open("ran", "w").close()
"""


def explain(folder: Path, *arguments: str) -> Ran:
    return run_command("explain", *arguments, cwd=folder)


def test_after_the_script_in_json(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    ended = explain(tmp_path, "fails.py", "--try", "--format", "json")
    report = json.loads(ended.stdout)
    jsonschema.validate(report, json.loads((DOCS / "report.schema.json").read_text()))
    (found,) = report["diagnostics"]
    assert (found["confirmed"], found["confirmation"]) == (True, CONFIRMED)
    assert ended.stderr.count("once") == 1
    assert ended.returncode == 1


@pytest.mark.parametrize("suffix", ["txt", "md"])
def test_before_the_script_for_people(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    explain(tmp_path, "--try", "--width", "100", "-o", f"report.{suffix}", "fails.py")
    assert f"= confirmed: {CONFIRMED}\n" in (tmp_path / f"report.{suffix}").read_text()


def test_standard_input(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tensorlens explain --try --width 100 - < fails.py"
    (tmp_path / "fails.py").write_text(FAILS)
    ended = subprocess.run(command, shell=True, cwd=tmp_path, text=True, capture_output=True, timeout=400, check=False)
    assert CONFIRMED in ended.stdout


def test_ctrl_c_in_a_further_run_leaves_the_first_report(tmp_path: Path) -> None:
    interrupt = SECOND.format(action="os.kill(os.getppid(), signal.SIGINT); raise KeyboardInterrupt")
    (tmp_path / "fails.py").write_text(interrupt + FAILS)
    ended = explain(tmp_path, "--try", "--width", "100", "fails.py")
    assert "`y.mul_(3)` overwrote `y`, which backward still needs" in ended.stdout
    assert "confirmed" not in ended.stdout
    assert "Traceback" not in ended.stderr.partition("RuntimeError")[2]
    assert ended.returncode == 1


def test_a_time_limit_in_a_further_run_leaves_the_first_report(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(SECOND.format(action="time.sleep(300)") + FAILS)
    ended = explain(tmp_path, "--try", "--timeout", "60", "--width", "100", "fails.py")
    assert "`y.mul_(3)` overwrote `y`, which backward still needs" in ended.stdout
    assert "the run did not end in time" in ended.stdout


def test_a_clean_script_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("import torch\nopen('runs', 'a').write('x')\nprint(torch.ones(2).sum())\n")
    ended = explain(tmp_path, "--try", "fine.py")
    assert ended.returncode == 0
    assert (tmp_path / "runs").read_text() == "x"
