"""Commands whose texts are taken as they are.

typer has pydantic check every value, those that were not given too. pydantic takes longer to import than `list` takes
to run, and a text is a text: only numbers and paths go that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperGroup

_TEXTS = (str, str | None, list[str] | None)


class Command(TyperCommand):
    """A command of ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, with values that need no check left alone."""
        _take_texts(self.callback, self.get_params(ctx))
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """All commands, and the options before their names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as typer does, with values that need no check left alone."""
        _take_texts(self.callback, self.get_params(ctx))
        return super().parse_args(ctx, args)


def _take_texts(callback: Callable[..., Any] | None, parameters: Iterable[Any]) -> None:
    kinds = get_type_hints(callback) if callback is not None else {}
    for parameter in parameters:
        _take(parameter, kinds.get(parameter.name) in _TEXTS)


def _take(parameter: Any, is_text: bool) -> None:
    checked: Callable[[Any, Any], Any] = parameter.process_value

    def process(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            value = () if parameter.nargs == -1 else None
        elif not is_text:
            return checked(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    parameter.process_value = process
