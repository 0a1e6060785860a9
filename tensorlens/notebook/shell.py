"""Describes what a notebook's shell has: the part of IPython's `InteractiveShell` that this package uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Shell(Protocol):
    """The shell of a notebook's kernel, or of IPython in a terminal."""

    user_ns: dict[str, Any]
    events: Any
    compile: Any
    display_pub: Any
    magics_manager: Any
    colors: str
    input_transformers_cleanup: list[Callable[[list[str]], list[str]]]
    showtraceback: Callable[..., None]

    def register_magic_function(self, func: Callable[..., Any], magic_kind: str, magic_name: str) -> None: ...

    def transform_cell(self, raw_cell: str) -> str: ...

    def find_magic(self, magic_name: str, magic_kind: str) -> Callable[..., Any] | None: ...

    def run_cell(self, raw_cell: str) -> object: ...
