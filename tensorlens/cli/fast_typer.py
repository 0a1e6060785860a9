"""Makes typer accept strings, paths and flags without pydantic, whose import takes longer than the command `list`.

typer asks pydantic to check every value, even one that was not given. Only numbers need a check. The help
pages have the colours of the other output, and are not wider than a person reads with ease.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperGroup

from tensorlens.cli.output import wants_color
from tensorlens.cli.report_options import OPTIONAL_VALUES

_STRINGS = (str, str | None, list[str] | None)
_PATHS = (Path, Path | None)
_WIDEST = 100  # columns of a help page


class _Help:
    """Prints the help page of a command."""

    help: str | None
    get_params: Callable[[Any], list[Any]]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the page as typer does, in the house's colours, and without the types of flags and arguments."""
        from typer import rich_utils

        rich_utils.STYLE_USAGE = rich_utils.STYLE_USAGE_COMMAND = "bold"
        rich_utils.STYLE_TYPES = "magenta"
        rich_utils.STYLE_NEGATIVE_OPTION, rich_utils.STYLE_NEGATIVE_SWITCH = "bold cyan", "bold green"
        rich_utils.FORCE_TERMINAL = wants_color()
        rich_utils.COLOR_SYSTEM = "standard" if wants_color() else None
        rich_utils.MAX_WIDTH = min(shutil.get_terminal_size().columns, _WIDEST)
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in (self.help or "").split("\n\n"))
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False) or parameter.param_type_name == "argument":
                parameter.display_type_rich = _no_type
        super().format_help(ctx, formatter)  # type: ignore[misc]


def _no_type(ctx: Any) -> None:
    return None


class Command(_Help, TyperCommand):
    """A command whose strings are not checked."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses as typer does, without checking strings. An option with an optional value gets the usual one."""
        parameters = self.get_params(ctx)
        _skip_checks(self.callback, parameters)
        words = _with_usual_values(args, parameters)
        if _begins_with_unknown_option(words, parameters):
            ctx.ignore_unknown_options = False  # which are a script's own options: there is no script before this one
        return super().parse_args(ctx, words)


class Group(_Help, TyperGroup):
    """The group of all commands, with the options before their names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses as typer does, without checking strings."""
        _skip_checks(self.callback, self.get_params(ctx))
        return super().parse_args(ctx, args)


def _with_usual_values(args: list[str], parameters: Iterable[Any]) -> list[str]:
    """Writes `--reference` as `--reference=copies`, up to the first word that is no option."""
    valued = {flag for parameter in parameters if not getattr(parameter, "is_flag", True) for flag in parameter.opts}
    found, rest = [], list(args)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word in OPTIONAL_VALUES and word in valued:
            found.append(f"{word}={OPTIONAL_VALUES[word]}")
            continue
        found.append(word)
        if word in valued and rest:
            found.append(rest.pop(0))
    return found + rest


def _begins_with_unknown_option(words: list[str], parameters: Iterable[Any]) -> bool:
    """Returns whether an option that the command does not have comes before the script, or before `-m MODULE`."""
    flags = {name: getattr(each, "is_flag", True) for each in parameters for name in (*each.opts, *each.secondary_opts)}
    rest = iter(words)
    for word in rest:
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if not word.startswith("-") or word in ("-", "--") or name == "-m" or os.path.exists(word):
            return False
        if name not in flags:
            return True
        if name == word and not flags[name]:
            next(rest, None)  # its value
    return False


def _skip_checks(callback: Callable[..., Any] | None, parameters: Iterable[Any]) -> None:
    types = get_type_hints(callback) if callback is not None else {}
    for parameter in parameters:
        _skip_check(parameter, types.get(parameter.name))


def _skip_check(parameter: Any, kind: Any) -> None:
    checked: Callable[[Any, Any], Any] = parameter.process_value

    def process(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            value = () if parameter.nargs == -1 else None
        elif kind in _PATHS and isinstance(value, str):
            value = Path(value)
        elif kind not in _STRINGS and not isinstance(value, bool):
            return checked(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    parameter.process_value = process
