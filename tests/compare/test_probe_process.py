"""The child process of `compare`: what it may do to itself without the command noticing more than a row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.folders import ROOT

from tensorlens.compare import ProbeOptions, compare, probe_process
from tensorlens.errors import UsageError

QUICK = ProbeOptions(size=100, timeout=3)


def test_an_operand_that_crashes_is_a_row_and_the_others_are_measured() -> None:
    crash = "__import__('os').kill(__import__('os').getpid(), 11)"
    comparison = compare([crash, "clone"], QUICK)
    runs = comparison.row("runs")
    assert runs is not None
    assert runs.values == (False, True)
    assert runs.differs
    assert runs.answers(0)[0].error == "the process crashed (SIGSEGV)"
    shares = comparison.row("shares_storage")
    assert shares is not None
    assert shares.values == (None, False)


def test_a_crash_in_the_middle_of_the_probes_loses_only_that_answer(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        "import os, torch\n"
        "def late(x):\n"
        "    if not torch.is_grad_enabled():\n"
        "        os.abort()\n"
        "    print('noise on standard output')\n"
        "    os.system('echo more noise')\n"
        "    return x * 2\n"
    )
    comparison = compare([f"{script}:late", "clone"], QUICK)
    allowed = comparison.row("allowed_under_no_grad")
    assert allowed is not None
    assert allowed.values == ("crash", True)
    assert allowed.answers(0)[0].error == "the process crashed (SIGABRT)"
    costs = comparison.row("bytes_allocated")
    assert costs is not None
    assert None not in costs.values


def test_a_guessed_call_that_crashes_is_not_an_unknown_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_process, "MAX_CRASHES", 1)  # each is another start of torch
    script = tmp_path / "both.py"
    script.write_text("import os\ndef both(x, y=None):\n    os.abort()\n")
    comparison = compare([f"{script}:both", "clone"], QUICK)
    runs = comparison.row("runs")
    assert runs is not None
    assert runs.values == (False, True)
    assert runs.answers(0)[0].error == "the process crashed (SIGABRT)"


def test_an_operand_that_hangs_is_given_up() -> None:
    comparison = compare(["__import__('time').sleep(60)", "clone"], ProbeOptions(size=100, timeout=1))
    runs = comparison.row("runs")
    assert runs is not None
    assert runs.answers(0)[0].error == "no answer within 1 seconds"
    assert runs.values == (False, True)


def test_mistakes_come_back_as_usage_errors() -> None:
    with pytest.raises(UsageError, match='unknown operand "detch"; nearest: detach'):
        compare(["detch", "clone"])
    with pytest.raises(UsageError, match="two operands or more"):
        compare(["clone"])


def test_the_asking_process_imports_no_torch_and_the_current_folder_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('the user has a queue.py')\n")
    (tmp_path / "torch.py").write_text("raise SystemExit('the user has a torch.py')\n")
    program = (
        "import sys, json\n"
        f"sys.path.append({str(ROOT)!r})\n"
        "from tensorlens.compare import compare, list_probes, ProbeOptions\n"
        "from tensorlens.render.comparison import render_comparison\n"
        "probes = [probe.name for probe in list_probes()]\n"
        "comparison = compare(['detach', 'clone'], ProbeOptions(size=100))\n"
        "text = render_comparison(comparison)\n"
        "print(json.dumps({'torch': 'torch' in sys.modules, 'probes': probes, 'text': text}))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    told = json.loads(ran.stdout)
    assert told["torch"] is False
    assert "shares_storage" in told["probes"]
    assert "shares memory with x" in told["text"]
    assert ran.stderr == ""
