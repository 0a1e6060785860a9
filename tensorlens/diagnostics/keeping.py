"""Losses and other results that a program keeps, step after step, with the graphs that they were computed in."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.facts import Facts
from tensorlens.analysis.held import kept
from tensorlens.analysis.syntax import kept_at
from tensorlens.diagnostics.wording import finding, fix, named
from tensorlens.model import Diagnostic, Label, Site

MAX_CALLERS = 4


def find_kept(facts: Facts, code: str) -> Iterator[Diagnostic]:
    for group in kept(facts):
        call = group.calls[-1]
        name = named(facts, call.outputs[0].tensor, call.index)
        what = "the backward pass that needed it is over" if group.passed else "no backward pass goes through it"
        yield finding(
            code,
            "warning",
            f"{name} of {group.alive} earlier steps was alive at once, each with its graph",
            f"a tensor keeps the graph that it was computed in for as long as it lives, though {what}: "
            "memory grows with every step",
            [
                _kept(facts, call.site, name),
                facts.label("graph_built_here", call.site, f"the graph of {name} ends here"),
            ],
            fixes=(fix(_cure(name)),),
            evidence={"rounds": group.alive, "tensor": name},
        )


def _kept(facts: Facts, made: int, name: str) -> Label | None:
    """The line that puts it into a container: where it was made, or where a caller got it."""
    site: Site | None = facts.trace.sites[made]
    for _ in range(MAX_CALLERS):
        if site is None:
            break
        span = kept_at(facts.trace.sources.get(site.span.file, ""), site.span, (*site.targets, name.strip("`")))
        if span is not None:
            return Label("shared_here", span, f"{name} is kept here, its graph with it")
        site = None if site.caller is None else facts.trace.sites[site.caller]
    return facts.label("shared_here", made, f"{name} is kept, its graph with it")


def _cure(name: str) -> str:
    if not name.startswith("`"):
        return "keep the number alone, `.item()`, or what has no graph, `.detach()`"
    plain = name.strip("`")
    return f"keep the number alone, `{plain}.item()`, or `{plain}.detach()`, which stays on the device"
