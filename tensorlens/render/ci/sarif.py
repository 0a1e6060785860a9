"""Renders findings as SARIF 2.1.0, the exchange format of code scanning: GitHub, GitLab, Azure DevOps, VS Code.

The lines of a finding (saved here, changed here, needed here) are a code flow; its page is the help of its rule.
Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensorlens.records.error_messages import entry
from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Fix, Label, Report
from tensorlens.render.ci.issues import STANDING_OUT, Issue, details, is_path, issues_of, shown_file, source_line
from tensorlens.render.manual import markdown_body
from tensorlens.render.options import RenderOptions
from tensorlens.render.report import headline
from tensorlens.render.safe_text import safe, written

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def to_sarif(report: Report, options: RenderOptions) -> str:
    """Returns a log with one run, and one result per finding."""
    trace, issues, seen = report.trace, list(issues_of(report)), Counter[str]()
    codes = list(dict.fromkeys(issue.code for issue in issues))
    script = trace.script
    run = {
        "tool": {
            "driver": {
                "name": "tensorlens",
                "version": trace.versions.tensorlens,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": script.outcome == "ok" or headline.is_well(trace),
                **({} if script.exit_code is None else {"exitCode": script.exit_code}),
            }
        ],
        "results": [_result(issue, codes.index(issue.code), trace, seen) for issue in issues],
    }
    return written({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(code: str) -> dict[str, Any]:
    known = entry(code)
    if known is None:
        text = "A fact about the training that a reader may want to know." if code == STANDING_OUT else code
        return {"id": code, "shortDescription": {"text": text}}
    command = f"tensorlens errors {code}"
    return {
        "id": code,
        "shortDescription": {"text": known.summary},
        "help": {"text": f"{command} shows its page.", "markdown": markdown_body(known)},
        "properties": {"precision": "high", "tags": ["autograd", known.family]},
    }


def _result(issue: Issue, rule: int, trace: Trace, seen: Counter[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": issue.code,
        "ruleIndex": rule,
        "level": issue.severity,
        "message": {"text": "\n".join([safe(issue.text), *details(issue, trace)])},
    }
    labels = [label for label in issue.labels if is_path(label.span.file)]
    if labels:
        result["locations"] = [_location(labels[0], trace)]
        main = labels[0].span
        same = f"{issue.code}\0{shown_file(main.file, trace)}\0{source_line(main, trace).strip()}"
        seen[same] += 1
        digest = hashlib.sha256(f"{same}\0{seen[same]}".encode()).hexdigest()
        result["partialFingerprints"] = {"tensorlensFinding/v1": digest}
    if len(labels) > 1:
        result["relatedLocations"] = [_location(label, trace, number) for number, label in enumerate(labels[1:], 1)]
        flow = [{"location": _location(label, trace)} for label in _in_order(labels)]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    fixes = [] if issue.diagnostic is None else [fix for fix in issue.diagnostic.fixes if fix.edits]
    if fixes:
        result["fixes"] = [_fix(fix, trace) for fix in fixes]
    return result


def _in_order(labels: Sequence[Label]) -> list[Label]:
    """Returns labels in the order in which the program ran the lines, as far as it is known."""
    known = sorted((label for label in labels if label.event is not None), key=lambda label: label.event or 0)
    rest = [label for label in labels if label.event is None]
    return [*rest, *known]


def _location(label: Label, trace: Trace, number: int | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {} if number is None else {"id": number}
    location["physicalLocation"] = {
        "artifactLocation": {"uri": _uri(label.span.file, trace)},
        "region": _region(label.span),
    }
    if label.text:
        location["message"] = {"text": safe(label.text)}
    return location


def _region(span: Span) -> dict[str, int]:
    """Returns a place; columns of SARIF count from 1, and the end is exclusive."""
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _uri(file: str, trace: Trace) -> str:
    shown = shown_file(file, trace)
    return Path(shown).as_uri() if Path(shown).is_absolute() else quote(shown)


def _fix(fix: Fix, trace: Trace) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement: dict[str, Any] = {"deletedRegion": _region(edit.span)}
        if edit.text:
            replacement["insertedContent"] = {"text": edit.text}
        changes.setdefault(_uri(edit.span.file, trace), []).append(replacement)
    return {
        "description": {"text": safe(fix.title)},
        "artifactChanges": [
            {"artifactLocation": {"uri": uri}, "replacements": replacements} for uri, replacements in changes.items()
        ],
    }
