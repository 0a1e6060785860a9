"""Reports as text. `RENDERERS` is the table that the command line and the tests read; importing it costs little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tensorlens.errors import UsageError
from tensorlens.render.options import RenderOptions

if TYPE_CHECKING:
    from tensorlens.records.report import Report

__all__ = ["RENDERERS", "RenderOptions", "Renderer", "render"]


@dataclass(frozen=True, slots=True)
class Renderer:
    """One form of the report: the function that makes it, and the file suffix that asks for it."""

    function: str  # "module:name", imported when it is used
    suffix: str

    def load(self) -> Callable[[Report, RenderOptions], str]:
        module, _, name = self.function.partition(":")
        function: Callable[[Report, RenderOptions], str] = getattr(import_module(module), name)
        return function


RENDERERS = {
    "table": Renderer("tensorlens.render.report.terminal:to_terminal", ".txt"),
    "json": Renderer("tensorlens.render.report.json:to_json", ".json"),
    "markdown": Renderer("tensorlens.render.report.markdown:to_markdown", ".md"),
}


def render(report: Report, format: str = "table", options: RenderOptions | None = None) -> str:
    """The report in one of the forms of `RENDERERS`.

    Raises:
        UsageError: there is no such format.
    """
    if format not in RENDERERS:
        raise UsageError(f"no such format: {format} (there are {', '.join(RENDERERS)})")
    return RENDERERS[format].load()(report, options or RenderOptions())
