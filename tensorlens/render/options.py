"""What a renderer may be told besides the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """`everything` unfolds what is left out of a table by default; `lesson` shows every source line and the docstring;
    `statements` are the texts of documented claims by id. `titled`: the lesson's title has been printed already."""

    width: int = 80
    color: bool = False
    everything: bool = False
    lesson: bool = False
    titled: bool = False
    statements: Mapping[str, str] = field(default_factory=dict)
