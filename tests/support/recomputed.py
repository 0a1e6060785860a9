"""Recomputes every cell of a comparison in a few lines of plain torch, without any code of the prober."""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tensorlens.compare.comparison_records import Input

SIGNED = [-1.5, 2.0, 0.0, 2.0, 0.5, -0.5, 1.0, -2.0, 3.0], [2.0, 2.0, 1.0, -1.0, 0.5, 3.0, -3.0, 1.5, -2.0]
POSITIVE = (
    [0.25, 0.75, 0.5, 0.75, 0.125, 0.375, 0.625, 0.0625, 0.875],
    [0.5, 0.75, 0.125, 0.25, 0.125, 0.875, 0.375, 0.5, 0.25],
)
Answer = Any
NOT_ASKED = "not asked"


class Run:
    """An operand, a fresh x for it, made by slicing and transposing as a user would, and after `go` the result."""

    def __init__(self, call: str, spec: Input, values: str = "", dtype: str = "") -> None:
        self.call, self.spec = call, spec
        kind = getattr(torch, dtype or spec.dtype)
        numbers, second = SIGNED if (values or spec.values) == "signed" else POSITIVE
        count = math.prod(spec.shape)
        own = torch.tensor((numbers * (count // 9 + 1))[:count], dtype=torch.float64).reshape(spec.shape)
        other = torch.tensor((second * (count // 9 + 1))[:count], dtype=torch.float64).reshape(spec.shape)
        floats = kind.is_floating_point or kind.is_complex
        if not floats:
            own, other = (own * 2).trunc(), (other * 2).trunc()
        grad = spec.requires_grad and floats
        self.y = other.to(kind).clone().requires_grad_(grad)  # a reshaped tensor is a view
        self.leaf = own.to(kind).clone().requires_grad_(grad)
        self.x = self._x(grad)
        self.before = self.x.detach().clone()
        self.result: Any = None

    def _x(self, grad: bool) -> torch.Tensor:
        spec, shape = self.spec, self.spec.shape
        wide = (*shape[:-1], shape[-1] * 2) if spec.layout in ("every_second", "first_columns") else shape
        wide = tuple(reversed(wide)) if spec.layout == "transposed" else wide
        memory = torch.zeros((2, *wide) if spec.view else wide, dtype=self.leaf.dtype)

        def part(of: torch.Tensor) -> torch.Tensor:
            of = of[1] if spec.view else of
            if spec.layout == "transposed":
                of = of.permute(*range(of.dim() - 1, -1, -1))
            if spec.layout == "every_second":
                of = of[..., ::2]
            return of[..., : shape[-1]] if spec.layout == "first_columns" else of

        if not spec.view:
            x = part(memory).data if not spec.contiguous else memory
            if grad and not spec.leaf:
                return x.copy_(self.leaf) if not spec.contiguous else self.leaf * 1
        elif grad and not spec.leaf:
            part(memory).copy_(self.leaf)
            return part(memory)
        else:
            x = part(memory)
        x.copy_(self.leaf.detach())
        if grad:
            self.leaf = x.requires_grad_()
        return x

    def go(self, seed: int = 3) -> Any:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        names = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "np": np, "x": self.x, "y": self.y}
        names["dtype"] = torch.float32 if self.x.dtype == torch.float64 else torch.float64
        names["device"] = self.x.device
        self.returned = eval(self.call, names)
        self.result = next(iter(tensors(self.returned)), None)
        return self

    def write(self, target: torch.Tensor) -> None:
        if target.dtype == torch.bool:
            target.logical_not_()
        else:
            target.add_(1)


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [each for item in value for each in tensors(item)]
    return []


def run(call: str, spec: Input, **changes: Any) -> Any:
    return Run(call, spec, **changes).go()


def answer(probe: str, call: str, spec: Input) -> Answer:
    """Returns the value of a cell; `NOT_ASKED` if it has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CELLS[probe](call, spec)
        except Exception:
            return "error"


def of_result(read: Callable[[Any], Any]) -> Callable[[str, Input], Answer]:
    def cell(call: str, spec: Input) -> Answer:
        ran = run(call, spec)
        return NOT_ASKED if ran.result is None else read(ran)

    return cell


def runs(call: str, spec: Input) -> bool:
    try:
        run(call, spec)
    except Exception:
        return False
    return True


def returns(call: str, spec: Input) -> str:
    value = run(call, spec).returned
    if type(value).__name__ != "Size" and isinstance(value, (tuple, list)):
        name = "tuple" if hasattr(value, "n_sequence_fields") else type(value).__name__
        return f"{name} of {len(value)}"
    return "None" if value is None else type(value).__name__


def warns(call: str, spec: Input) -> Answer:
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(call, spec)
    finally:
        torch.set_warn_always(False)
    return caught[0].category.__name__ if caught else False


def storage(tensor: torch.Tensor) -> Any:
    try:
        return tensor.untyped_storage().data_ptr() if tensor.untyped_storage().nbytes() else object()
    except NotImplementedError:
        return None


def shares_storage(ran: Any) -> Answer:
    theirs, own = storage(ran.result), storage(ran.x)
    return NOT_ASKED if theirs is None or own is None else theirs == own


def version_counter(ran: Any) -> Answer:
    if ran.result is ran.x:
        return True
    with torch.no_grad():
        for one, other in ((ran.result, ran.x), (ran.x, ran.result)):
            before = other._version
            with contextlib.suppress(RuntimeError):
                ran.write(one)
                return other._version != before
    return NOT_ASKED


def changes_source(call: str, spec: Input) -> Answer:
    ran = Run(call, spec)
    x = ran.x
    node, version, facts = x.grad_fn, x._version, (x.requires_grad, x.stride(), x.data_ptr(), x.dtype, x.retains_grad)
    ran.go()
    names = ["requires_grad", "strides", "memory", "dtype", "retains_grad"]
    now = (x.requires_grad, x.stride(), x.data_ptr(), x.dtype, x.retains_grad)
    found = {name for name, old, new in zip(names, facts, now, strict=True) if old != new}
    found |= {"grad_fn"} if x.grad_fn is not node else set()
    found |= {".grad"} if x.grad is not None else set()
    if x.shape != ran.before.shape:
        found.add("shape")
    elif not torch.equal(torch.nan_to_num(x.detach()), torch.nan_to_num(ran.before)):
        found.add("values")
    elif x._version != version:
        found.add("written with the same values")
    return found


def shape_of(ran: Any) -> str:
    return "(" + ", ".join(map(str, ran.shape)) + (",)" if ran.dim() == 1 else ")")


def shapes(call: str, spec: Input) -> Answer:
    found = [shape_of(each) for each in tensors(run(call, spec).returned)]
    if len(found) < 2:
        return found[0] if found else NOT_ASKED
    return f"{found[0]} each" if len(set(found)) == 1 else set(found)


def dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).split(".")[1]


def integer_dtype(call: str, spec: Input) -> Answer:
    plain = Input("i", "i", spec.shape, "int64", "cpu", False, True, spec.layout, spec.view, spec.values)
    if spec.values != "signed":
        return None  # not recomputed
    try:
        result = run(call, plain).result
    except Exception:
        return "refused"
    return NOT_ASKED if result is None else dtype(result)


def promoted(call: str, spec: Input) -> Answer:
    ran = Run(call, spec)
    ran.y = ran.y.detach().double().requires_grad_(ran.y.requires_grad)
    try:
        result = ran.go().result
    except Exception:
        return "refused"
    return NOT_ASKED if result is None else dtype(result)


def strides(ran: Any) -> Answer:
    expected = Run(ran.call, ran.spec).x
    if ran.result.layout != torch.strided or ran.result.shape != expected.shape:
        return NOT_ASKED
    return all(a == b for a, b, n in zip(ran.result.stride(), expected.stride(), expected.shape, strict=True) if n > 1)


def grad_fn(call: str, spec: Input) -> Answer:
    ran = Run(call, spec)
    before = ran.x.grad_fn
    ran.go()
    if ran.result is None:
        return NOT_ASKED
    if ran.result is ran.x and before is not None and ran.x.grad_fn is before:
        return "x's own"
    return None if ran.result.grad_fn is None else ran.result.grad_fn.name().split("::")[-1]


def nodes(call: str, spec: Input) -> int:
    ran, other = Run(call, spec), torch.ones(1, requires_grad=True)
    first = number_of(other * 1)
    ran.go()
    return number_of(other * 1) - first - 1


def number_of(tensor: torch.Tensor) -> int:
    """Returns the sequence number of the node that made a tensor."""
    assert tensor.grad_fn is not None
    return tensor.grad_fn._sequence_nr()


def pulled(ran: Any, at: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor | None:
    """Returns the gradient of `(result * weights).sum()` at a leaf."""
    result = ran.result if ran.result.layout == torch.strided else ran.result.to_dense()
    if not result.requires_grad:
        return None
    before = None if at.grad is None else at.grad.clone()
    result.backward(torch.ones_like(result) if weights is None else weights.to(result.dtype))
    if before is not None:
        return None if at.grad is None else at.grad - before
    return at.grad


def weights_for(result: torch.Tensor) -> torch.Tensor:
    count = result.numel()
    return (torch.arange(1, count + 1, dtype=torch.float64) ** 1.5 / 3).sin().reshape(result.shape) + 0.1


def reaches(of: str) -> Callable[[str, Input], Answer]:
    def cell(call: str, spec: Input) -> Answer:
        found = []
        for kind in (spec.dtype, *(["float64"] if spec.dtype == "float32" else [])):
            try:
                ran = run(call, spec, dtype=kind)
            except Exception:
                continue
            at = getattr(ran, of)
            if ran.result is None or not at.requires_grad:
                return NOT_ASKED
            grad = pulled(ran, at, weights_for(ran.result))
            small = 1e-12 if kind == "float64" else 1e-5
            found.append(False if grad is None else True if not bool((grad.abs() <= small).all()) else "zeros")
        return True if found[0] == "zeros" and found[-1] is True else found[0]

    return cell


def fills_grad(call: str, spec: Input) -> Answer:
    ran = run(call, spec)
    if not ran.leaf.requires_grad and ran.leaf.grad is None and not spec.requires_grad:
        return NOT_ASKED
    names = ["x"] if ran.x.grad is not None else []
    names += ["the leaf behind x"] if ran.leaf is not ran.x and ran.leaf.grad is not None else []
    names += ["y"] if ran.y.grad is not None else []
    filled = [each.grad for each in (ran.leaf, ran.x, ran.y) if each.grad is not None]
    return ", ".join(names) + ("; requires grad" if any(each.requires_grad for each in filled) else "") or False


def gradient_of_sum(call: str, spec: Input) -> Answer:
    ran = run(call, spec)
    if ran.result is None or not spec.requires_grad:
        return NOT_ASKED
    try:
        ran.result.sum().backward()
    except Exception:
        return "backward raises"
    again = run(call, spec)
    return pulled(again, again.leaf)


def later_gradient(call: str, spec: Input) -> Answer:
    if not spec.requires_grad:
        return NOT_ASKED
    ran = run(call, spec)
    ran.leaf.grad = None
    try:
        ran.x.sum().backward()
    except Exception:
        return "backward raises"
    return ran.leaf.grad


def identity(call: str, spec: Input) -> Answer:
    answers = []
    for values in ("signed", "positive"):
        try:
            ran = run(call, spec, values=values)
        except Exception:
            continue
        if ran.result is None or not spec.requires_grad:
            return NOT_ASKED
        sent = weights_for(ran.result).to(ran.result.dtype)
        got = pulled(ran, ran.leaf, sent)
        answers.append(got is not None and got.numel() == sent.numel() and same(got.flatten(), sent.flatten()))
    return all(answers)


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.allclose(
        one.double(), other.double(), rtol=1e-5, atol=1e-8, equal_nan=True
    )


def two(of: torch.Tensor) -> torch.Tensor:
    return torch.full(
        of.shape, 2.0, dtype=of.dtype if of.dtype.is_floating_point or of.dtype.is_complex else None, requires_grad=True
    )


def written(which: str) -> Callable[[str, Input], Answer]:
    """Runs a program with and without the write, and compares the gradients of what it computed before the write."""

    def program(call: str, spec: Input, write: bool) -> Any:
        ran = Run(call, spec)
        if which == "earlier":
            w = two(ran.x)
            z = ran.x * w
            roots = [z]
            if write:
                ran.go()
        else:
            ran.go()
            if ran.result is None:
                return NOT_ASKED
            used, target = (ran.x, ran.result) if which == "result" else (ran.result, ran.x)
            w = two(used)
            z = used * w
            if write:
                needs_no_grad = which == "source" and ran.x.is_leaf and ran.x.requires_grad
                try:
                    with torch.no_grad() if needs_no_grad else contextlib.nullcontext():
                        ran.write(target)
                except Exception:
                    return "write refused"
            roots = [z, target] if which == "result" and target.requires_grad else [z]
        try:
            torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])
        except Exception:
            return "error"
        return [w.grad, *([] if which == "earlier" else [ran.leaf.grad, ran.y.grad])]

    def cell(call: str, spec: Input) -> Answer:
        got = program(call, spec, True)
        if not isinstance(got, list):
            return got
        right = program(call, spec, False)
        return "fine" if all(map(same, got, right)) else "silently wrong"

    return cell


def use_in_graph(ran: Any) -> str:
    try:
        z = ran.result * two(ran.result)
        z.backward(torch.ones_like(z))
    except Exception:
        return "error"
    return "fine"


def allowed(no_grad: bool) -> Callable[[str, Input], bool]:
    def cell(call: str, spec: Input) -> bool:
        leaf = Input("l", "l", spec.shape, spec.dtype, "cpu", True, True, spec.layout, spec.view, spec.values)
        with torch.no_grad() if no_grad else contextlib.nullcontext():
            return runs(call, leaf)

    return cell


CELLS: dict[str, Callable[[str, Input], Answer]] = {
    "runs": runs,
    "returns": returns,
    "warns": warns,
    "same_object": lambda call, spec: (ran := run(call, spec)).returned is ran.x,
    "shares_storage": of_result(shares_storage),
    "is_view": of_result(
        lambda ran: (
            ran.result is not ran.x
            and ran.result._base is not None
            and (ran.result._base is ran.x or ran.result._base is ran.x._base)
        )
    ),
    "shares_version_counter": of_result(version_counter),
    "changes_source": changes_source,
    "result_shape": shapes,
    "result_dtype": of_result(lambda ran: dtype(ran.result)),
    "integer_dtype": integer_dtype,
    "promoted_dtype": promoted,
    "result_device": of_result(lambda ran: str(ran.result.device)),
    "contiguous": of_result(
        lambda ran: ran.result.is_contiguous() if ran.result.layout == torch.strided else NOT_ASKED
    ),
    "keeps_strides": of_result(strides),
    "requires_grad": of_result(lambda ran: ran.result.requires_grad),
    "is_leaf": of_result(lambda ran: ran.result.is_leaf),
    "trains": of_result(lambda ran: ran.result.is_leaf and ran.result.requires_grad),
    "is_inference": of_result(lambda ran: ran.result.is_inference()),
    "grad_fn": grad_fn,
    "nodes_added": nodes,
    "gradient_reaches_source": reaches("leaf"),
    "gradient_reaches_y": reaches("y"),
    "fills_grad": fills_grad,
    "gradient_of_sum": gradient_of_sum,
    "later_gradient": later_gradient,
    "gradient_is_identity": identity,
    "earlier_use_then_backward": written("earlier"),
    "write_result_then_backward": written("result"),
    "write_source_then_backward": written("source"),
    "use_in_graph": of_result(use_in_graph),
    "allowed_on_leaf_requiring_grad": allowed(False),
    "allowed_under_no_grad": allowed(True),
}
