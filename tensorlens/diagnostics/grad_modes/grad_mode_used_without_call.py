"""Finds the cause of `grad-mode-used-without-call`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.report import Diagnostic

CODE = "grad-mode-used-without-call"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        name = next((value.name for value in failure.values if value.type == "type"), None)
        if name is not None:
            yield finding(
                CODE,
                severity_of(failure),
                f"a `with` statement was given the class `{name}` itself",
                f"the block needs an instance of `{name}`, and calling the class makes one",
                [facts.label("rejected_here", failure.site, f"`{name}` is not called here")],
                fixes=(fix(f"call it: `with torch.{name}():`"),),
                evidence={"context_manager": name},
            )
