"""The options of a renderer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The options of every renderer.

    Args:
        everything: show the rows that a comparison leaves out by default.
        lesson: show every source line, and the docstring.
        titled: the title of the lesson has been printed already.
        statements: the texts of documented statements, by id.
    """

    width: int = 80
    color: bool = False
    everything: bool = False
    lesson: bool = False
    titled: bool = False
    statements: Mapping[str, str] = field(default_factory=dict)
