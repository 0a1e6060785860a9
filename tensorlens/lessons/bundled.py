"""Finds the bundled lessons and reads their docstrings and claims. Imports no torch."""

from __future__ import annotations

import ast
import difflib
import os
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorlens.errors import UsageError
from tensorlens.lessons.article_statements import ARTICLES, STATEMENTS
from tensorlens.paths import PACKAGE
from tensorlens.records.source import tree_of

_ARTICLE = re.compile(r"^Article: (.+) \(in Chinese\), part (\d+)$", re.MULTILINE)
_NUMBERED = re.compile(r"\d{3}-\d+")  # the ids of the articles' statements; a user's lesson may have other ids
_IDS = {title: article for article, title in ARTICLES.items()}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A bundled script. `article` is the id of the article that it follows, such as "004". `teaches` is its docstring
    without the title and without the line `Article: TITLE (in Chinese), part 2`."""

    name: str
    title: str
    teaches: str
    article: str
    part: int
    path: Path


@cache
def lessons() -> tuple[Lesson, ...]:
    """Returns all bundled lessons, in the order of the articles and their parts."""
    unordered = map(_lesson, sorted(_folder().glob("*.py")))
    return tuple(sorted(unordered, key=lambda lesson: (lesson.article, lesson.part)))


def find(name: str) -> Path:
    """Returns the script of a bundled lesson, or the user's own script if `name` is a path.

    Raises:
        UsageError: there is neither, or a `#:` line of the user's own lesson is not a claim.
    """
    lesson = bundled(name)
    if lesson is not None:
        return lesson
    path, exists = Path(name), os.path.exists(name)  # `Path.exists` would raise for a name that is too long
    if name and (path.suffix == ".py" or exists or len(path.parts) > 1):
        if not exists:
            raise UsageError(f"no such file: {path}")
        _check_claims(path)
        return path
    near = difflib.get_close_matches(name.lower(), [lesson.name for lesson in lessons()], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "tensorlens list shows them all"
    raise UsageError(f"no lesson named {name!r}; {hint}")


def bundled(name: str) -> Path | None:
    """Returns the script of the bundled lesson of this name; None if there is none."""
    path = _folder() / f"{name.replace('-', '_')}.py"
    return path if path.parent == _folder() and os.path.exists(path) else None


def _check_claims(path: Path) -> None:
    """Rejects wrong claims before the script runs. The run reports all other mistakes."""
    from tensorlens.records import claim_syntax  # `list` reads no claims

    try:
        with tokenize.open(path) as file:
            specs = claim_syntax.parse(file.read())
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (OSError, SyntaxError, ValueError):
        return
    known = {statement.id for statement in STATEMENTS}
    for spec in specs:
        if spec.id and spec.id not in known and _NUMBERED.fullmatch(spec.id):
            reason = f"no statement has the id {spec.id}; tensorlens claims shows all"
            raise UsageError(f"{path}: line {spec.line}: {reason}")


def is_bundled(path: Path) -> bool:
    """Returns whether `path` is a bundled lesson, whose claims' ids refer to the articles' statements."""
    return path.parent == _folder()


@dataclass(frozen=True, slots=True)
class Header:
    """The facts to print before a lesson runs.

    They are its title; the `exception` that it is expected to end with, and the line of the claim that says so; and
    whether the script seems to print. "" means none.
    """

    title: str = ""
    exception: str = ""
    line: int = 0
    prints: bool = False


def header(path: Path) -> Header:
    """Reads the header of a lesson; an empty one if the script can't be read, which the run will report."""
    from tensorlens.records import claim_syntax

    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree, specs = tree_of(source), claim_syntax.parse(source)
    except (OSError, SyntaxError, ValueError, UsageError):
        return Header()
    title = ((ast.get_docstring(tree) if tree else "") or "").partition("\n")[0]
    expected = [spec for spec in specs if spec.raises and spec.column == 0 and spec.expected == "holds"]
    prints = tree is not None and any(_name(node) in _PRINTING for node in ast.walk(tree))
    raises = expected[-1].raises if expected else None
    return Header(title, raises[0], expected[-1].line, prints) if raises else Header(title, prints=prints)


_PRINTING = ("print", "pprint", "pp", "stdout", "__stdout__", "system")


def _name(node: ast.AST) -> str:
    """Returns the identifier of a name or an attribute; "" for other nodes."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _folder() -> Path:
    """Returns the folder of the scripts: inside the package when installed, beside it in a checkout."""
    for folder in (PACKAGE.resolve() / "scenarios", PACKAGE.resolve().parent / "scenarios"):
        if (folder / "detach.py").is_file():
            return folder
    raise UsageError("the bundled lessons are missing from this installation")


def _lesson(path: Path) -> Lesson:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")
    source = _ARTICLE.search(rest)
    article, part = (_IDS[source[1]], int(source[2])) if source else ("", 0)
    teaches = _ARTICLE.sub("", rest).strip()
    # a lesson about one function has the function's name: `requires_grad_`, not `requires-grad-`
    name = path.stem if title.startswith(f"{path.stem}()") else path.stem.replace("_", "-")
    return Lesson(name, title, re.sub(r"\n{3,}", "\n\n", teaches), article, part, path)
