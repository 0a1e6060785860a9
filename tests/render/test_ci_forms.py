"""Reports for CI services and editors: each is read as its reader reads it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.folders import DOCS, ROOT, TESTS
from support.traces import written_alias
from support.warm import Warm

from tensorlens.diagnostics import report_on
from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix, Label, Report, StandingOut
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.headline import script_file

SOURCE = """\
a = torch.tensor([1.2, 3.4, 5.6], requires_grad=True)
out = a.sigmoid()
c = out.detach()
c.zero_()
out.sum().backward()
"""
SARIF = json.loads((TESTS / "data" / "sarif-schema-2.1.0.json").read_text())
CONCISE = re.compile(r"^(.+?):(\d+):(\d+): (error|warning|note)(?:\[([a-z-]+)\])?: (.+)$")


def hostile(report: Report) -> Report:
    """Returns the report with text in it that each of the forms has a special meaning for."""
    (found,) = report.diagnostics
    text = "100% of a,b: <b>\x1b[31m\r\n::error::\u202e"
    edits = (Edit(Span(script_file(report.trace), 3, 4, 3, 7), "a\n\x07"),)
    labels = (*found.labels, Label("needed_here", Span("<ipython-input-1>", 1, 0, 1, 4), text))
    changed = replace(found, title=text, explanation=text, fixes=(Fix(text, edits),), labels=labels)
    return replace(report, diagnostics=(changed,), standing_out=(StandingOut(text, ()),))


def placed(report: Report, folder: Path) -> Report:
    """Returns the report of the same script in another folder."""
    old, new = script_file(report.trace), str(folder / "demo.py")
    trace = replace(
        report.trace, script=replace(report.trace.script, folder=str(folder)), sources={new: report.trace.sources[old]}
    )
    (found,) = report.diagnostics
    labels = tuple(replace(label, span=replace(label.span, file=new)) for label in found.labels)
    return replace(report, trace=trace, diagnostics=(replace(found, labels=labels),))


@pytest.fixture(params=["plain", "hostile"])
def report(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.chdir(tmp_path)
    made = placed(written_alias(SOURCE), tmp_path)
    return hostile(made) if request.param == "hostile" else made


def test_concise_lines_have_the_form_that_problem_matchers_read(report: Report) -> None:
    lines = render(report, "concise").splitlines()
    matches = [CONCISE.match(line) for line in lines if not line.startswith("demo.py: note[stands-out]")]
    assert all(matches), lines
    (found,) = report.diagnostics
    assert [int(m[2]) for m in matches if m] == [label.span.line for label in found.labels]
    assert [int(m[3]) for m in matches if m] == [label.span.column + 1 for label in found.labels]
    assert matches[0] is not None
    assert matches[0].group(4, 5) == ("error", "saved-tensor-modified-inplace")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Reads workflow commands as the runner does: `actions/runner`, ActionCommand.TryParseV2."""
    found = []
    for line in text.splitlines():
        assert line.startswith("::"), line
        head, _, data = line[2:].partition("::")
        name, _, properties = head.partition(" ")
        pairs = dict(item.split("=", 1) for item in properties.split(","))
        plain = {key: _unescaped(_unescaped(value, "%3A", ":"), "%2C", ",") for key, value in pairs.items()}
        found.append((name, plain, data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")))
    return found


def _unescaped(text: str, code: str, char: str) -> str:
    return text.replace(code, char)


def test_github_gets_one_command_per_finding_at_its_line(report: Report) -> None:
    first, *rest = commands(render(report, "github"))
    (found,) = report.diagnostics
    span = found.labels[0].span
    assert first[0] == "error"
    assert first[1] == {
        "file": "demo.py",
        "line": str(span.line),
        "endLine": str(span.end_line),
        "col": str(span.column + 1),
        "endColumn": str(span.end_column),
        "title": "tensorlens: saved-tensor-modified-inplace",
    }
    assert f"why: {found.explanation}"[:9] in first[2]
    assert [name for name, *_ in rest] == ["notice"] * len(report.standing_out or ())


def test_gitlab_reads_a_code_quality_report(report: Report) -> None:
    issues = json.loads(render(report, "gitlab"))
    assert issues[0]["check_name"] == "saved-tensor-modified-inplace"
    assert issues[0]["location"] == {"path": "demo.py", "lines": {"begin": 4, "end": 4}}
    assert issues[0]["severity"] == "critical"
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)


def test_sarif_is_valid_and_its_code_flow_has_the_lines_of_the_finding(report: Report) -> None:
    log = json.loads(render(report, "sarif"))
    jsonschema.Draft4Validator(SARIF).validate(log)
    (run,) = log["runs"]
    result = run["results"][0]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "saved-tensor-modified-inplace"
    assert "## Fixed" in rule["help"]["markdown"]
    flow = [step["location"] for step in result["codeFlows"][0]["threadFlows"][0]["locations"]]
    files = [label.span for label in report.diagnostics[0].labels if not label.span.file.startswith("<")]
    assert sorted(place["physicalLocation"]["region"]["startLine"] for place in flow) == sorted(s.line for s in files)
    assert all(place["physicalLocation"]["artifactLocation"]["uri"] == "demo.py" for place in flow)


def test_labels_of_a_code_flow_are_in_the_order_of_the_run() -> None:
    report = written_alias(SOURCE)
    (found,) = report.diagnostics
    places = {label.span.line: label for label in found.labels}
    labels = tuple(replace(places[line], event=line) for line in sorted(places, reverse=True))
    log = json.loads(render(replace(report, diagnostics=(replace(found, labels=labels),)), "sarif"))
    flow = log["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in flow] == sorted(places)


def test_a_fingerprint_stays_when_lines_move(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = written_alias(SOURCE), written_alias("\n\n" + SOURCE)
    moved = tuple(replace(x, span=replace(x.span, line=x.span.line + 2, end_line=x.span.end_line + 2))
                  for x in before.diagnostics[0].labels)  # fmt: skip
    after = replace(after, diagnostics=(replace(before.diagnostics[0], labels=moved),))

    def print_of(report: Report) -> Any:
        return json.loads(render(report, "sarif"))["runs"][0]["results"][0]["partialFingerprints"]

    assert print_of(before) == print_of(after)


@pytest.mark.parametrize("form", ["concise", "github", "gitlab", "sarif"])
def test_a_report_without_findings_names_no_line(form: str) -> None:
    report = replace(written_alias(SOURCE), diagnostics=())
    text = render(report, form, RenderOptions())
    assert "demo.py:" not in text
    assert text.strip() in ("", "[]") or json.loads(text)["runs"][0]["results"] == []


def test_paths_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pkg dir"
    folder.mkdir()
    report = placed(written_alias(SOURCE), folder)
    monkeypatch.chdir(tmp_path)
    assert render(report, "concise").startswith("pkg dir/demo.py:4:1: ")
    place = json.loads(render(report, "sarif"))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "pkg%20dir/demo.py"
    monkeypatch.chdir("/")
    inside = render(report, "concise").partition(":")[0]
    assert inside == str(folder / "demo.py").removeprefix("/")


def test_the_problem_matcher_of_the_docs_reads_each_line(report: Report) -> None:
    text = (DOCS / "ci.md").read_text()
    task = json.loads(text.partition("```json\n")[2].partition("```")[0])
    pattern = task["tasks"][0]["problemMatcher"]["pattern"]
    found = [re.match(pattern["regexp"], line) for line in render(report, "concise").splitlines()]
    first = found[0]
    assert first is not None
    named = {key: first[number] for key, number in pattern.items() if key != "regexp"}
    assert named.pop("message")
    assert named == {
        "file": "demo.py",
        "line": "4",
        "column": "1",
        "severity": "error",
        "code": "saved-tensor-modified-inplace",
    }
    assert all(found[: len(report.diagnostics[0].labels)])


def test_the_command_of_the_docs_is_what_a_run_writes(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, trace = warm.traced(DOCS / "examples" / "gan_step.py")
    shown = (DOCS / "ci.md").read_text().partition("```text\n")[2].partition("```")[0]
    assert shown.split() == render(report_on(trace), "github").split()
