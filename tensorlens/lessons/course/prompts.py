"""Asks questions at a prompt. A user answers them, or prepared lines do. Imports no torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TextIO, cast

from rich.console import Console
from rich.prompt import InvalidResponse, PromptBase
from rich.text import Text

from tensorlens.render.theme import THEME


class Prompter:
    """Asks until an answer can be read. If `answers` are given, they take the place of the user's input."""

    def __init__(self, answers: Iterable[str] | None, color: bool) -> None:
        self._answers = None if answers is None else _Answers(answers)
        self._console = Console(
            file=sys.stdout, theme=THEME, no_color=not color, highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    def ask(self, prompt: str, read: Callable[[str], str]) -> str:
        """Returns the answer as `read` converts it; shows the text of a ValueError from `read` and asks again.

        Raises:
            EOFError: the input has ended.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        question = _Question(Text(prompt, style="heading"), console=self._console)
        question.read = read
        return question(stream=cast("TextIO | None", self._answers))


class _Question(PromptBase[str]):
    prompt_suffix = " "
    read: Callable[[str], str]

    def process_response(self, value: str) -> str:
        try:
            return self.read(value.strip())
        except ValueError as error:
            raise InvalidResponse(str(error)) from None

    def on_validate_error(self, value: str, error: InvalidResponse) -> None:  # noqa: ARG002
        self.console.print(error.message)


class _Answers:
    """A stream of answers for rich, which prints each answer as if it had been typed."""

    def __init__(self, answers: Iterable[str]) -> None:
        self._left = iter(answers)

    def readline(self) -> str:
        answer = next(self._left, None)
        if answer is None:
            raise EOFError
        sys.stdout.write(answer.rstrip("\n") + "\n")
        return answer
