"""The options of a renderer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """`everything` shows the rows that a table leaves out by default. `lesson` shows every source line and the
    docstring. `titled`: the lesson's title has been printed already. `statements`: the texts of documented statements,
    by id."""

    width: int = 80
    color: bool = False
    everything: bool = False
    lesson: bool = False
    titled: bool = False
    statements: Mapping[str, str] = field(default_factory=dict)
