"""The bundled lessons: where they lie, what they are called, and what their docstrings say. Imports no torch."""

from __future__ import annotations

import ast
import difflib
import os
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorlens import claims
from tensorlens.errors import UsageError

_ARTICLE = re.compile(r"^Article: (\w+), part (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A bundled script. `teaches` is its docstring below the title, less the line `Article: 004, part 2`: which article
    it mirrors, and where it stands in it."""

    name: str
    title: str
    teaches: str
    article: str
    part: int
    path: Path


@cache
def lessons() -> tuple[Lesson, ...]:
    """Every bundled lesson, in the order of the articles and of the parts of each."""
    found = map(_lesson, sorted(_folder().glob("*.py")))
    return tuple(sorted(found, key=lambda lesson: (lesson.article, lesson.part)))


def find(name: str) -> Path:
    """The script of a bundled lesson, or of the user's own where `name` is a path.

    Raises:
        UsageError: there is neither, or the user's own has a `#:` line that is no claim.
    """
    lesson = bundled(name)
    if lesson is not None:
        return lesson
    path, exists = Path(name), os.path.exists(name)  # unlike those of Path, these bear a name that is too long
    if name and (path.suffix == ".py" or exists or len(path.parts) > 1):
        if not exists:
            raise UsageError(f"no such file: {path}")
        _check_claims(path)
        return path
    near = difflib.get_close_matches(name.lower(), [lesson.name for lesson in lessons()], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "tensorlens list shows them all"
    raise UsageError(f"no lesson named {name!r}; {hint}")


def bundled(name: str) -> Path | None:
    """The script of the bundled lesson of this name, if there is one."""
    path = _folder() / f"{name.replace('-', '_')}.py"
    return path if path.parent == _folder() and os.path.exists(path) else None


def _check_claims(path: Path) -> None:
    """What is wrong with the claims is said before the script runs; what is wrong with the rest, by running it."""
    try:
        with tokenize.open(path) as file:
            claims.parse(file.read())
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (OSError, SyntaxError, ValueError):
        return


def _folder() -> Path:
    """The scripts' folder: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "scenarios", package.parent / "scenarios"):
        if (folder / "detach.py").is_file():
            return folder
    raise UsageError("the bundled lessons are missing from this installation")


def _lesson(path: Path) -> Lesson:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")
    found = _ARTICLE.search(rest)
    article, part = (found[1], int(found[2])) if found else ("", 0)
    teaches = _ARTICLE.sub("", rest).strip()
    # a lesson about one function is called as the function is: `requires_grad_`, and not `requires-grad-`
    name = path.stem if title.startswith(f"{path.stem}()") else path.stem.replace("_", "-")
    return Lesson(name, title, re.sub(r"\n{3,}", "\n\n", teaches), article, part, path)
