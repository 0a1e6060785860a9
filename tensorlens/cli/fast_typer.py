"""Makes typer accept strings without pydantic, whose import takes longer than the whole command `list`.

typer asks pydantic to check every value, even one that was not given. Only numbers and paths need a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperGroup

_STRINGS = (str, str | None, list[str] | None)


class Command(TyperCommand):
    """A command whose strings are not checked."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses as typer does, without checking strings."""
        _skip_checks(self.callback, self.get_params(ctx))
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """The group of all commands, with the options before their names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses as typer does, without checking strings."""
        _skip_checks(self.callback, self.get_params(ctx))
        return super().parse_args(ctx, args)


def _skip_checks(callback: Callable[..., Any] | None, parameters: Iterable[Any]) -> None:
    types = get_type_hints(callback) if callback is not None else {}
    for parameter in parameters:
        _skip_check(parameter, types.get(parameter.name) in _STRINGS)


def _skip_check(parameter: Any, is_string: bool) -> None:
    checked: Callable[[Any, Any], Any] = parameter.process_value

    def process(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            value = () if parameter.nargs == -1 else None
        elif not is_string:
            return checked(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    parameter.process_value = process
