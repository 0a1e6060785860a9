"""Reads the report of a program with thousands of lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import tensorlens
from tensorlens.diagnostics import report_on
from tensorlens.render import RenderOptions, render
from tensorlens.render.report import terminal
from tensorlens.render.report.terminal import ReportParts


def test_the_story_of_a_long_program_is_made_only_if_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tensorlens.trace() as lens:
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.sum().backward()
    report = report_on(lens.trace())
    whole = RenderOptions(width=80, height=1)
    assert "(--story)" in render(report, "table", whole)
    monkeypatch.setattr(terminal, "_LONG", 2)
    made: list[object] = []
    story = vars(ReportParts)["_story"].func

    def counting(parts: ReportParts) -> object:
        made.append(parts)
        return story(parts)

    monkeypatch.setattr(ReportParts, "_story", property(counting))
    text = render(report, "table", whole)
    assert text.rstrip().endswith("not shown: what each line did (--story) and the table of all tensors (--tensors)")
    assert made == []
    render(report, "table", replace(whole, story=True))
    assert made
