"""`explain` fails for the findings that count: comments that ignore a code, a baseline, `--fail-on`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS

from tensorlens.cli.commands import RunSettings, explain, view
from tensorlens.cli.gate import Gate
from tensorlens.cli.output import Output
from tensorlens.errors import UsageError

PROGRAM = """\
import torch

weight = torch.ones(3, requires_grad=True)
gate = weight.exp()
try:
    gate.add_(1){comment}
    gate.sum().backward()
except RuntimeError:
    pass
"""
CODE = "saved-tensor-modified-inplace"
SCHEMA = json.loads((DOCS / "report.schema.json").read_text())


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("p.py")
    path.write_text(PROGRAM.format(comment=""))
    return path


def run(output: Output, settings: RunSettings | None = None) -> int:
    return explain(None, ["p.py"], output, settings or RunSettings())


def test_fail_on_a_note(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(Output("concise")) == 0
    assert f"p.py:6:5: note[{CODE}]: " in capfd.readouterr().out
    assert run(Output("concise"), RunSettings(fail_on="warning")) == 0
    assert run(Output("concise"), RunSettings(fail_on="note")) == 1


@pytest.mark.parametrize(
    ("comment", "ignores"),
    [
        (f"  # tensorlens: ignore[{CODE}]", True),
        (f"  # tensorlens: ignore[leaf-modified-inplace, {CODE}]", True),
        (f"  # later  # tensorlens: ignore[{CODE}]", False),
        ("  # tensorlens: ignore[leaf-modified-inplace]", False),
        (f"; text = '# tensorlens: ignore[{CODE}]'", False),
    ],
)
def test_a_comment_ignores_its_codes(
    script: Path, comment: str, ignores: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    script.write_text(PROGRAM.format(comment=comment))
    assert run(Output(), RunSettings(fail_on="note")) == (0 if ignores else 1)
    text = capfd.readouterr().out
    assert (f"ignored: `{CODE}` (comment at line 6)" in text) == ignores
    assert (f"note[{CODE}]" in text) == (not ignores)
    assert ("no other finding in " in text) == ignores
    assert "no problem" not in text


def test_the_json_report_has_what_is_ignored(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script.write_text(PROGRAM.format(comment=f"  # tensorlens: ignore[{CODE}]"))
    run(Output("json"))
    report = json.loads(capfd.readouterr().out)
    jsonschema.validate(report, SCHEMA)
    assert report["diagnostics"] == []
    (ignored,) = report["ignored"]
    assert ignored["code"] == CODE
    assert ignored["comment"]["line"] == 6


def test_a_baseline_hides_what_it_has_also_after_lines_moved(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    baseline = Path("known.json")
    run(Output("json", baseline))
    settings = RunSettings(baseline=baseline, fail_on="note")
    script.write_text("\n\n" + script.read_text())
    assert run(Output(), settings) == 0
    assert "ignored: 1 finding of the baseline" in capfd.readouterr().out
    second = PROGRAM.format(comment="").replace("gate", "other").replace("import torch", "")
    script.write_text(script.read_text() + second)
    assert run(Output("concise"), settings) == 1
    assert capfd.readouterr().out.startswith("p.py:17:5: ")


def test_a_baseline_hides_no_more_of_a_finding_than_it_has(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    baseline = Path("known.json")
    run(Output("json", baseline))
    script.write_text(script.read_text() + PROGRAM.format(comment="").replace("import torch", ""))
    assert run(Output("concise"), RunSettings(baseline=baseline, fail_on="note")) == 1
    assert capfd.readouterr().out.count(f"note[{CODE}]") == 1


def test_view_takes_both_options(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace, baseline = Path("trace.json"), Path("known.json")
    run(Output(path=trace))
    run(Output("json", baseline))
    assert view(trace, Output("concise"), RunSettings(fail_on="note")) == 1
    assert view(trace, Output("concise"), RunSettings(fail_on="note", baseline=baseline)) == 0


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"diagnostics": [{}]}', '{"diagnostics": 3}', "nonsense", "[" * 9999]
)
def test_a_baseline_that_is_no_report_is_one_clear_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"known\.json is no report in JSON: make one with --format json -o"):
        Gate(path)


def test_a_baseline_that_is_missing_and_an_unknown_severity(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't read the baseline .*: No such file"):
        Gate(tmp_path / "no.json")
    with pytest.raises(UsageError, match="--fail-on takes error, warning, note, not 'info'"):
        Gate(fail_on="info")
