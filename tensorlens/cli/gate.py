"""Decides which findings make a command fail: `--fail-on`, `--baseline`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlens.cli.exit_codes import FAILED, OK, report_exit_code
from tensorlens.errors import UsageError

if TYPE_CHECKING:
    from tensorlens.records.merged_report import MergedReport
    from tensorlens.records.report import Report

SEVERITIES = ("error", "warning", "note")  # the most severe first


@dataclass(frozen=True)
class Gate:
    """The findings that count: those that `baseline`, a report in JSON, does not have. They make the exit code 1 if one
    is as severe as `fail_on`."""

    baseline: Path | None = None
    fail_on: str = "error"

    def __post_init__(self) -> None:
        if self.fail_on not in SEVERITIES:
            raise UsageError(f"--fail-on takes {', '.join(SEVERITIES)}, not {self.fail_on!r}")
        _ = self.known  # a file that can't be read is an error before the script runs

    @cached_property
    def known(self) -> Counter[tuple[str, str, str]]:
        """Returns the keys of the findings in the baseline.

        Raises:
            UsageError: it can't be read, or is no report.
        """
        if self.baseline is None:
            return Counter()
        from tensorlens.diagnostics.ignored import keys_of

        try:
            data = json.loads(self.baseline.read_text(encoding="utf-8"))
            reports = data if isinstance(data, list) else [data]
            return Counter(key for report in reports for key in keys_of(report))
        except OSError as error:
            raise UsageError(f"can't read the baseline {self.baseline}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"{self.baseline} is no report in JSON: make one with --format json -o {self.baseline}"
            ) from None

    def passed(self, report: Report) -> Report:
        """Returns the report without the findings that the baseline has."""
        if not self.known:
            return report
        from tensorlens.diagnostics.ignored import without_known

        return without_known(report, self.known)

    def exit_code(self, report: Report, is_lesson: bool = False) -> int:
        """Returns the exit code for a report. In a distributed run, and in a lesson that ends as it announces, findings
        do not count."""
        code = report_exit_code(report, is_lesson)
        if code != OK or is_lesson or report.trace.script.rank is not None:
            return code
        return FAILED if self.has_counting(report) else OK

    def has_counting(self, report: Report) -> bool:
        """Returns whether a finding is as severe as `fail_on`."""
        counting = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        return any(each.severity in counting for each in report.diagnostics)

    def exit_code_of_ranks(self, report: MergedReport) -> int:
        """Returns the exit code for the report of several ranks, of which each must have ended well."""
        counting = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        ended = all(each.ending == "ended" for each in report.endings)
        return FAILED if not ended or any(each.diagnostic.severity in counting for each in report.findings) else OK
