"""The words of the course, a few sentences to each. Imports no torch."""

from __future__ import annotations

from tensorlens.lessons.course.curriculum import STAGES

_STAGE_WORDS = {
    "basics": (
        ("gradient", "how much the number that `backward()` starts from changes with each element of a tensor"),
        ("requires grad", "autograd records what is computed from the tensor, so that `backward()` can go back to it"),
        ("graph", "what autograd recorded: the way from a result back to the tensors it was computed from"),
        ("leaf", "a tensor without a recorded past: `backward()` puts its gradient in `.grad` if it requires grad"),
        ("grad_fn", "the recorded operation that made the tensor: `MulBackward0` goes back through a product"),
        ("not kept", "the gradient passes through a tensor that is no leaf, and `.grad` stays empty"),
    ),
    "memory": (
        ("storage", "the memory that holds the values: #1, #2, in the order in which the script meets it"),
        ("alias", "another tensor on the same memory"),
        ("version", "how many changes in place autograd has counted; v0 -> v1 is the first"),
    ),
    "graph": (
        ("outside the graph", "made from a tensor that requires grad, and nothing was recorded"),
        ("constant", "a number to the graph: `backward()` computes no gradient for it"),
        ("saved", "kept by the graph, with its version, because a gradient is computed from it"),
    ),
}
_CLAIMS = (
    ("holds, refuted", "the run found the sentence true, or false; `only if` and `false when` say where that depends"),
    ("000-3", "the third sentence of the first article that is checked here; `tensorlens claims` lists them all"),
)


def of_lesson(name: str) -> tuple[tuple[str, str], ...]:
    """The words that a lesson needs first: those of a stage at the first lesson of it."""
    return next((_STAGE_WORDS.get(stage.name, ()) for stage in STAGES if stage.lessons[0] == name), ())


def every() -> tuple[tuple[str, str], ...]:
    """All words, in the order in which the course uses them."""
    return (*(word for words in _STAGE_WORDS.values() for word in words), *_CLAIMS)
