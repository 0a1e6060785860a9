"""Runs programs given as text, finds what is wrong with them, and applies the first help."""

from __future__ import annotations

import textwrap
from pathlib import Path

from support.warm import Warm
from tensorlens.diagnostics import diagnose
from tensorlens.records.edits import edited
from tensorlens.records.report import Diagnostic


class Programs:
    """Runs programs in a folder. `head` is put before a text that does not begin with it; `reference` compares two
    runs."""

    def __init__(self, warm: Warm, folder: Path, head: str = "", *, reference: bool = False) -> None:
        self._warm, self._folder, self._head = warm, folder, head
        self._traced = warm.compared if reference else warm.traced

    def findings(self, text: str) -> list[Diagnostic]:
        """Returns the errors and warnings of a program."""
        return [finding for finding in self._diagnosed(text) if finding.severity != "note"]

    def first(self, text: str) -> Diagnostic:
        """Returns the first finding of a program: a note, if it has nothing else."""
        return self._diagnosed(text)[0]

    def error(self, text: str) -> Diagnostic:
        """Returns the only error of a program."""
        (error,) = [finding for finding in self.findings(text) if finding.severity == "error"]
        return error

    def repaired(self, text: str, finding: Diagnostic) -> str:
        """Returns a program as the first help of a finding repairs it; "" if that help has no edit."""
        edits = finding.fixes[0].edits
        return edited(self._whole(text), edits) if edits else ""

    def helped(self, text: str) -> tuple[Diagnostic, str]:
        """Returns the first finding of a program, and the program as its first help repairs it."""
        finding = self.first(text)
        return finding, self.repaired(text, finding)

    def printed(self, text: str) -> str:
        """Returns what a program prints. It must end without an exception."""
        return self.outputs(text)[0]

    def outputs(self, text: str) -> tuple[str, str]:
        """Returns what a program writes to stdout and to stderr. It must end without an exception."""
        ran = self._warm.plain(self._written(text))
        assert ran.returncode == 0, ran.stderr
        return ran.stdout, ran.stderr

    def _diagnosed(self, text: str) -> tuple[Diagnostic, ...]:
        return diagnose(self._traced(self._written(text))[1])

    def _written(self, text: str) -> Path:
        script = self._folder / "script.py"
        script.write_text(self._whole(text), encoding="utf-8")
        return script

    def _whole(self, text: str) -> str:
        code = textwrap.dedent(text)
        return code if code.startswith(self._head) else self._head + code


def lines_of(finding: Diagnostic, role: str) -> list[int]:
    """Returns the lines that a finding labels with a role."""
    return [label.span.line for label in finding.labels if label.role == role]
