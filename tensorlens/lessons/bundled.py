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

from tensorlens.errors import UsageError
from tensorlens.lessons.article_statements import ARTICLES, STATEMENTS
from tensorlens.paths import PACKAGE
from tensorlens.records import claim_syntax
from tensorlens.records.source import tree_of

_ARTICLE = re.compile(r"^Article: (.+) \(in Chinese\), part (\d+)$", re.MULTILINE)
_NUMBERED = re.compile(r"\d{3}-\d+")  # as the articles' statements are; other ids are the writer's own
_IDS = {title: article for article, title in ARTICLES.items()}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A bundled script. `teaches` is its docstring below the title, less the line `Article: TITLE (in Chinese), part 2`
    with the article that it mirrors and the place there. `article` is the article's id, "004"."""

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
    """Whether `path` is one of ours: the ids of its claims mean the articles' statements."""
    return path.parent == _folder()


@dataclass(frozen=True, slots=True)
class Announced:
    """What is said of a lesson before it runs: its docstring's first line, the exception that a claim says ends it and
    the claim's line, whether it has a word in it that prints. What there is none of is empty."""

    title: str = ""
    exception: str = ""
    line: int = 0
    prints: bool = False


def announced(path: Path) -> Announced:
    """What a lesson says of itself; nothing where the script can't be read, which running it will say."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree, specs = tree_of(source), claim_syntax.parse(source)
    except (OSError, SyntaxError, ValueError, UsageError):
        return Announced()
    title = ((ast.get_docstring(tree) if tree else "") or "").partition("\n")[0]
    ends = [spec for spec in specs if spec.raises and spec.column == 0 and spec.expected == "holds"]
    prints = tree is not None and any(_name(node) in _PRINTING for node in ast.walk(tree))
    raises = ends[-1].raises if ends else None
    return Announced(title, raises[0], ends[-1].line, prints) if raises else Announced(title, prints=prints)


_PRINTING = ("print", "pprint", "pp", "stdout", "__stdout__", "system")


def _name(node: ast.AST) -> str:
    """The word that a name or an attribute is."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _folder() -> Path:
    """The scripts' folder: inside the package when installed, beside it in a checkout."""
    for folder in (PACKAGE.resolve() / "scenarios", PACKAGE.resolve().parent / "scenarios"):
        if (folder / "detach.py").is_file():
            return folder
    raise UsageError("the bundled lessons are missing from this installation")


def _lesson(path: Path) -> Lesson:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")
    found = _ARTICLE.search(rest)
    article, part = (_IDS[found[1]], int(found[2])) if found else ("", 0)
    teaches = _ARTICLE.sub("", rest).strip()
    # a lesson about one function is called as the function is: `requires_grad_`, and not `requires-grad-`
    name = path.stem if title.startswith(f"{path.stem}()") else path.stem.replace("_", "-")
    return Lesson(name, title, re.sub(r"\n{3,}", "\n\n", teaches), article, part, path)
