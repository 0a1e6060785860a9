"""Explains the terms of the course, in a sentence each. Imports no torch."""

from __future__ import annotations

from tensorlens.lessons.course.curriculum import STAGES

_TERMS = {
    "basics": (
        ("gradient", "how much the number that `backward()` starts from changes with each element of a tensor"),
        (
            "requires grad",
            "autograd records what is computed from the tensor, so that `backward()` can reach it",
        ),
        (
            "graph",
            "what autograd recorded: the operations from a result back to the tensors it was computed from",
        ),
        (
            "leaf",
            "made by no recorded operation: `backward()` puts its gradient in `.grad` if it requires grad",
        ),
        ("grad_fn", "the recorded operation that made the tensor: `MulBackward0` is the backward of a product"),
        ("not a leaf", "the gradient passes through a tensor that is not a leaf, and its `.grad` stays empty"),
    ),
    "memory": (
        ("storage", "the memory that holds the values: #1, #2, in the order in which the script first uses it"),
        ("same memory", "a second tensor on the same storage: a change of one may change the other"),
        ("version", "how many changes in place autograd has counted; v0 -> v1 is the first"),
    ),
    "graph": (
        ("detached", "made from a tensor that requires grad, and nothing was recorded"),
        ("constant", "treated as a plain number by the graph: `backward()` computes no gradient for it"),
        ("saved", "kept by the graph, with its version, because `backward()` needs it to compute a gradient"),
    ),
}
_CLAIMS = (
    ("holds, refuted", "the run showed the sentence to be true, or false; `only if` and `false when` give conditions"),
    ("000-3", "the third sentence of the first article that is checked here; `tensorlens claims` lists them all"),
)


def of_lesson(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the terms to explain before a lesson: those of its stage if it is the first lesson there, else none."""
    return next((_TERMS.get(stage.name, ()) for stage in STAGES if stage.lessons[0] == name), ())


def all_terms() -> tuple[tuple[str, str], ...]:
    """Returns all terms, in the order in which the course uses them."""
    return (*(term for terms in _TERMS.values() for term in terms), *_CLAIMS)
