"""Orders the lessons, and links each to comparisons and pages to read next. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tensorlens.lessons.bundled import Lesson, lessons


@dataclass(frozen=True, slots=True)
class Stage:
    """Lessons that belong together, in the order in which they build on each other."""

    name: str
    about: str
    lessons: tuple[str, ...]


STAGES = (
    Stage("basics", "the properties of a tensor, and one gradient", ("tensor-basics", "requires_grad_", "sigmoid")),
    Stage("memory", "which tensors share it", ("data-alias", "detach-shares", "clone-write")),
    Stage(
        "graph",
        "what autograd records, and where gradients stop",
        ("clone", "copy_", "detach", "detach-untouched", "detach-backward", "no_grad", "independent-copy"),
    ),
    Stage(
        "in place",
        "what an in-place change does to the graph",
        ("detach-write", "data-write", "data-attribute", "detach_", "init-leaf"),
    ),
    Stage(
        "training",
        "the same in a training step",
        ("freeze-branch", "freeze-flag", "detach-after-step", "momentum-copy"),
    ),
)
_OTHERS = Stage("more", "lessons that are not part of the course yet", ())

COMPARISONS = {
    "tensor-basics": ("item detach",),
    "requires_grad_": ("requires_grad_ detach",),
    "data-alias": ("detach data",),
    "detach-shares": ("detach clone",),
    "clone-write": ("clone detach",),
    "clone": ("clone detach",),
    "copy_": ("clone copy_",),
    "detach": ("detach clone", "detach data"),
    "detach-untouched": ("detach clone",),
    "detach-backward": ("detach clone",),
    "no_grad": ("no_grad inference_mode",),
    "independent-copy": ("x.detach().clone() x.clone().detach()",),
    "detach-write": ("detach clone", "detach data"),
    "data-write": ("detach data",),
    "data-attribute": ("detach data",),
    "detach_": ("detach detach_",),
    "init-leaf": ("zero_ zeros_like",),
    "freeze-branch": ("detach requires_grad_",),
    "freeze-flag": ("detach requires_grad_", "no_grad detach"),
    "detach-after-step": ("detach clone",),
    "momentum-copy": ("copy_ clone",),
}
"""The operands of `compare` commands that show the point of a lesson beside its alternatives."""


@cache
def course() -> tuple[tuple[Stage, tuple[Lesson, ...]], ...]:
    """Returns all bundled lessons by stage, in learning order; those that no stage names come last."""
    known = {lesson.name: lesson for lesson in lessons()}
    staged = {name for stage in STAGES for name in stage.lessons}
    groups = [(stage, tuple(known[name] for name in stage.lessons if name in known)) for stage in STAGES]
    others = tuple(lesson for lesson in lessons() if lesson.name not in staged)
    return tuple((stage, group) for stage, group in [*groups, (_OTHERS, others)] if group)


def after(name: str) -> str:
    """Returns the next lesson; "" after the last."""
    names = [lesson.name for _, group in course() for lesson in group]
    following = names[names.index(name) + 1 :] if name in names else []
    return following[0] if following else ""


def see_also(name: str) -> Iterator[str]:
    """Yields the commands to continue with after a lesson: `compare detach clone`, `errors detach-shares-memory`."""
    from tensorlens.records.error_messages import entries  # `list` does not need them

    yield from (f"compare {' '.join(map(_typed, words.split()))}" for words in COMPARISONS.get(name, ()))
    linked = [entry for entry in entries() if f"run {name}" in entry.see]
    yield from (f"errors {entry.code}" for entry in sorted(linked, key=lambda entry: entry.tier)[:4])


def _typed(operand: str) -> str:
    """Quotes an operand for the shell."""
    return f'"{operand}"' if "(" in operand else operand


_TOPICS = (
    (r"\bcopy_\(", "compare clone copy_"),
    (r"\bdetach_\(", "compare detach detach_"),
    (r"\bno_grad\b", "compare no_grad inference_mode"),
    (r"_version\b", "errors saved-tensor-modified-inplace"),
    (r"\.data\b", "compare detach data"),
    (r"\bgrad_fn\b", "errors grad-fn-is-none"),
    (r"\bclone\(.*\bdetach\(|\bdetach\(.*\bclone\(", "errors copy-construct-from-tensor"),
    (r"\bdetach\(|data_ptr|untyped_storage", "compare detach clone"),
    (r"\bclone\(", "compare clone detach"),
    (r"not \w+\.is_leaf", "errors nonleaf-grad-access"),
    (r"\.grad is (not )?None", "errors none-grad-attribute"),
    (r"is_leaf|requires_grad", "compare requires_grad_ detach"),
    (r"\bitem\(", "compare item detach"),
)
"""Pairs of a pattern and the command to read about a claim that matches it. The first matches count."""
_ADDED = "gradient-accumulates-without-zero-grad"  # the page on gradients that are added up


def to_read(lesson: str, check: str, message: str = "", added: bool = False) -> list[str]:
    """Returns the commands to read after a wrong answer about `check`.

    If the script raised `message`, that is the message's page. Otherwise they are the page on added gradients, if
    gradients were `added` and the check is about one; then the topics of the check; or else a link of the lesson.
    """
    from tensorlens.records.error_messages import classify

    if code := classify(message):
        return [f"errors {code}"]
    commands = [f"errors {_ADDED}"] if added and ".grad" in check else []
    commands += [command for pattern, command in _TOPICS if re.search(pattern, check)]
    return list(dict.fromkeys(commands))[:2] or list(see_also(lesson))[:1]
