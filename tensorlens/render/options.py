"""The options of a renderer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The options of every renderer.

    Args:
        height: the rows of the screen; a report that fits on it is shown in full.
        story: show every line of the script that did something, also where a report would leave it out.
        tensors: show every tensor, also where a report would leave it out.
        findings_first: begin with the findings, for a file; on a screen the end is what a reader sees.
        everything: show the rows that a comparison leaves out by default.
        lesson: show every source line, and the docstring.
        titled: the title of the lesson has been printed already.
        statements: the texts of documented statements, by id.
    """

    width: int = 80
    height: int = 50
    color: bool = False
    story: bool = False
    tensors: bool = False
    findings_first: bool = False
    everything: bool = False
    lesson: bool = False
    titled: bool = False
    statements: Mapping[str, str] = field(default_factory=dict)
