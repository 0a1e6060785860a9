"""Lists the statements of the five articles, paraphrased. The claims of the bundled lessons refer to them by id.

`ARTICLES` gives each article an English title: its own, or one that describes it. If a run can't decide a statement as
it is, `narrowed` says what is measured instead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    id: str  # "000-5": the article, and a number within it
    article: str
    text: str
    narrowed: str = ""


ARTICLES = {
    "000": "detach, data, clone and copy_ compared",
    "001": "The difference between requires_grad_(), detach() and torch.no_grad()",
    "002": "clone(), detach() and what belongs with them",
    "003": "The difference between tensor.detach() and tensor.data",
    "004": "What detach() does to backward, in four examples",
}
"""The five articles. They are in Chinese."""


def _article(article: str, *texts: str | tuple[str, str]) -> tuple[Statement, ...]:
    pairs = ((text, "") if isinstance(text, str) else text for text in texts)
    return tuple(Statement(f"{article}-{number}", article, *pair) for number, pair in enumerate(pairs, 1))


STATEMENTS: tuple[Statement, ...] = (
    *_article(
        "000",
        "`detach()` returns a new tensor with the same shape, dtype and device",
        "a detached tensor shares memory with its source",
        "changing a detached tensor or its source in place may make backward raise",
        "a detached tensor does not require grad and is outside the graph",
        "a detached tensor has no gradient even after its `requires_grad` is set to True by hand",
        "with `requires_grad` set again, a detached tensor is a leaf at which backward stops",
        "`detach_()` returns a new tensor, as `detach()` does",
        "`.data` returns a new tensor that shares memory with its source",
        "changing a tensor in place through `.data` raises nothing, and makes gradients wrong",
        "a tensor taken with `.data` has no gradient even after its `requires_grad` is set to True by hand",
        "`clone()` returns a tensor of the same shape, dtype and device in memory of its own",
        "`clone()` is differentiable: its source receives the gradient unchanged",
        (
            "`copy_` accepts a source of another (broadcastable) shape, another dtype and another device",
            "the other device is PyTorch's meta device, which every machine has",
        ),
        "`copy_` shares no memory with its source, and the gradient flows to the source",
        ("`a.detach().clone()` does less than `a.clone().detach()`", "the nodes that each leaves in the graph"),
        "a leaf that requires grad cannot be changed in place",
        "`.data.zero_()` initialises a leaf that requires grad",
        "`A.data.copy_(B.data)` is the only way to copy one network's parameters into another's",
        "the trainable parameters of a model are leaves",
        "reading `.grad` of a tensor that is not a leaf warns, and gives None after backward",
        "after `retain_grad()` a tensor that is not a leaf keeps its gradient",
        "gradients accumulate over backward calls: 2, then 5, then 8 in the clone example",
        "`.data` returns a tensor with the same shape, dtype and device",
        "with `requires_grad` set again, a `.data` tensor is a leaf at which backward stops",
        "`clone()` and `detach()` together, in either order, give the same values in a fully independent tensor",
    ),
    *_article(
        "001",
        "`a.data` is another object than `a`, on the same memory",
        "`requires_grad_()` works in place, and its argument is True by default",
        "a detached tensor shares data with its source, but not `.grad`",
        (
            "what is computed under `no_grad` does not require grad; what is computed outside does",
            "one differentiable operation on a tensor that requires grad",
        ),
        ("`no_grad` saves memory", "the bytes of the results on the way that stay allocated after their last use"),
        "`item()` gives a tensor's only element as a Python number",
        ("the default dtype is torch.float32", "as long as `torch.set_default_dtype` is not called"),
        (
            "`requires_grad=True` where no gradient is needed costs computation and memory",
            "one matrix product: its floating-point operations forward and backward, and the bytes of the gradients",
        ),
        "`requires_grad=False` freezes a part of a network, so that only the rest is updated",
    ),
    *_article(
        "002",
        "a clone and its source do not affect each other",
        ("`clone()` avoids the cost of a deep copy", "the bytes that each allocates"),
        (
            "a clone has the same attributes as its source",
            "shape, stride, dtype, device, layout, type, requires_grad, is_leaf and grad_fn",
        ),
        (
            "without `detach()` before gradients are zeroed, training runs out of memory",
            "whether the graph grows from one training step to the next",
        ),
        (
            "after `optimizer.step()` and `detach()`, `y` prints as random-looking numbers",
            "whether its elements differ, in the article's own example",
        ),
        "writing the detached tensor does not change gradients computed before",
        "work on `.data` is not recorded in the graph",
        "`detach_()` makes no new tensor",
        "`detach_()` returns nothing",
        "after `y.detach_()`, `y` prints with `requires_grad=True`",
        "a detached tensor cannot be updated by gradients",
        (
            "`.data` should be avoided, and `detach()` used instead",
            "what each makes of the same write to a tensor that backward needs",
        ),
    ),
    *_article(
        "003",
        "neither `detach()` nor `.data` copies data",
        "reading `.data` creates no new tensor",
        "an operation on `.data` acts on the original's data",
        "`.data` does not cut the gradient: it still flows through what is computed from it",
        "`.data` keeps the original's gradient information",
    ),
    *_article(
        "004",
        "a detached tensor stays at its source's memory and does not require grad",
        "a detached tensor never has a gradient, even with `requires_grad` set to True again",
        "backward stops at a detached tensor",
        "the first example gives `a.grad` = [0.1779, 0.0313, 0.0037]",
        "detaching without writing does not affect backward",
        'the third example raises "element 0 of tensors does not require grad and does not have a grad_fn"',
        "the fourth example changes both tensors, and backward raises the version error",
        "training a branch on detached features leaves the trunk's parameters as they are",
    ),
)
