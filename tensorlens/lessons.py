"""The bundled lessons: where they lie, what they are called, and what their docstrings say. Imports no torch."""

from __future__ import annotations

import ast
import difflib
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorlens import claims
from tensorlens.errors import UsageError

_ORDER = (
    *("detach", "clone", "copy_", "independent-copy", "init-leaf", "momentum-copy"),
    *("tensor-basics", "data-alias", "requires_grad_", "no_grad"),
    *("clone-write", "detach-after-step", "data-write", "detach_"),
    *("detach-shares", "data-attribute"),
    *("sigmoid", "detach-untouched", "detach-backward", "detach-write", "freeze-branch"),
)
_ARTICLE = re.compile(r"^Article: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A bundled script. `teaches` is its docstring below the title, `article` the article that it mirrors."""

    name: str
    title: str
    teaches: str
    article: str
    path: Path


@cache
def lessons() -> tuple[Lesson, ...]:
    """Every bundled lesson, in the order in which they are told."""
    return tuple(_lesson(name, _folder() / f"{name.replace('-', '_')}.py") for name in _ORDER)


def find(name: str) -> Path:
    """The script of a bundled lesson, or of the user's own where `name` is a path.

    Raises:
        UsageError: there is neither, or the user's own has a `#:` line that is no claim.
    """
    for known in _ORDER:
        if name == known or name == known.replace("-", "_"):
            return _folder() / f"{known.replace('-', '_')}.py"
    path = Path(name)
    if name and (path.suffix == ".py" or path.exists() or len(path.parts) > 1):
        if not path.exists():
            raise UsageError(f"no such file: {path}")
        _check_claims(path)
        return path
    near = difflib.get_close_matches(name.lower(), _ORDER, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "tensorlens list shows them all"
    raise UsageError(f"no lesson named {name!r}; {hint}")


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


def _lesson(name: str, path: Path) -> Lesson:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")
    article = _ARTICLE.search(rest)
    teaches = _ARTICLE.sub("", rest).strip()
    return Lesson(name, title, re.sub(r"\n{3,}", "\n\n", teaches), article[1] if article else "", path)
