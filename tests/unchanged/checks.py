"""Runs tests that are part of PyTorch's wheel, with and without the lens: both runs must end alike.

The wheel lacks the test suites, but has the parts of many of their tests: the cases of `test_nn.py`, the
checks of `test_ops_gradients.py` and `test_ops.py` (gradcheck, composite compliance), and `opcheck`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.testing._internal import common_nn, composite_compliance
from torch.testing._internal.common_utils import freeze_rng_state
from torch.utils._pytree import tree_flatten, tree_unflatten

import tensorlens
from unchanged.observing import Lens, Observed, Outcome, attempt, compared, tensors_in, watched
from unchanged.operations import samples

MOST_TENSORS = 6
_ADDRESS = re.compile(r"0x[0-9a-f]+|(?<= at )\d{9,}")
_equal = partial(torch.testing.assert_close, equal_nan=True)


class ModuleTest(common_nn.NNTestCase):
    """The methods that the cases of `common_nn` expect of the test that runs them."""

    def runTest(self) -> None:  # so that one can be made without the name of a test
        raise NotImplementedError

    def _forward(self, module: Any, given: Any) -> Any:
        with freeze_rng_state():
            return module(*given) if isinstance(given, tuple) else module(given)

    def _get_parameters(self, module: Any) -> Any:
        parameters = list(module.parameters())
        return parameters, [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]

    def _zero_grad_parameters(self, module: Any) -> None:
        module.zero_grad(set_to_none=False)

    def _backward(self, module: Any, given: Any, output: Any, grad_output: Any, create_graph: bool = False) -> Any:
        output.backward(grad_output, retain_graph=True, create_graph=create_graph)
        return given.grad

    def _forward_criterion(self, criterion: Any, given: Any, target: Any, extra_args: Any = ()) -> Any:
        inputs = given if isinstance(given, tuple) else (given,)
        return criterion(*inputs, target, *(extra_args or ()))


def module_cases() -> list[Callable[[], Any]]:
    """Yields makers of the tests of modules, in training and evaluation mode, and of losses."""
    cases = []
    for entry in common_nn.get_new_module_tests():
        cases.append(partial(_case, common_nn.NewModuleTest, entry))
        if "check_eval" in entry:
            cases.append(partial(_case, common_nn.NewModuleTest, entry, evaluated=True))
    return cases + [partial(_case, common_nn.CriterionTest, entry) for entry in common_nn.criterion_tests]


def _case(kind: Any, entry: dict[str, Any], evaluated: bool = False) -> Any:
    settings = {"default_dtype": torch.float64, **entry}  # as in `test_nn.py`
    settings.pop("decorator", None)
    constructor = settings.pop("constructor", None) or getattr(torch.nn, settings.pop("module_name"))
    if evaluated:
        settings["desc"] = f"{settings.get('desc', '')}_eval"
        return kind(lambda *args, **kwargs: constructor(*args, **kwargs).eval(), **settings)
    return kind(constructor, **settings)


def _gradcheck(op: Any, sample: Any, twice: bool = False) -> None:
    """Checks the derivatives that an operation declares, with random projections instead of whole Jacobians."""
    flat, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, value in enumerate(flat) if isinstance(value, torch.Tensor) and value.requires_grad]

    def function(*inputs: torch.Tensor) -> Any:
        values = list(flat)
        for place, value in zip(places, inputs, strict=True):
            values[place] = value
        given, args, kwargs = tree_unflatten(values, spec)
        return sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, given, *args, **kwargs))

    inputs = tuple(flat[n] for n in places)
    settings = {"fast_mode": True, "nondet_tol": op.gradcheck_nondet_tol}
    if twice:
        batched, forward = op.check_batched_gradgrad, op.supports_fwgrad_bwgrad
        torch.autograd.gradgradcheck(
            function, inputs, check_batched_grad=batched, check_fwd_over_rev=forward, **settings
        )
    else:
        batched, forward = op.check_batched_grad, op.supports_forward_ad
        torch.autograd.gradcheck(function, inputs, check_batched_grad=batched, check_forward_ad=forward, **settings)


def _composite(op: Any, sample: Any) -> None:
    arguments = (op.op, (sample.input, *sample.args), sample.kwargs, _equal)
    composite_compliance.check_with_mode(*arguments)
    composite_compliance.check_all_permutations(*arguments)


def _composite_backward(op: Any, sample: Any) -> None:
    arguments = (op.op, (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad)
    composite_compliance.check_backward_formula(*arguments, op.gradcheck_wrapper, _equal)


def _composite_forward_mode(op: Any, sample: Any) -> None:
    arguments = (op.op, (sample.input, *sample.args), sample.kwargs, op.gradcheck_wrapper, _equal)
    composite_compliance.check_forward_ad_formula(*arguments)


def _opcheck(op: Any, sample: Any) -> None:
    torch.library.opcheck(op.op, (sample.input, *sample.args), sample.kwargs)


CHECKS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Any], None]]] = {
    "gradcheck of operations": (lambda op: op.supports_autograd, _gradcheck),
    "gradgradcheck of operations": (lambda op: op.supports_gradgrad, partial(_gradcheck, twice=True)),
    "composite compliance of operations": (lambda op: True, _composite),
    "composite compliance of their backward": (lambda op: op.supports_autograd, _composite_backward),
    "composite compliance of their forward mode": (lambda op: op.supports_forward_ad, _composite_forward_mode),
}
"""What PyTorch checks of every operation: which operations have it, and the check of one sample."""


def has(op: Any, name: str) -> bool:
    return torch.float64 in op.dtypes and CHECKS[name][0](op)


def _few(found: list[Any]) -> list[Any]:
    """Yields samples with few enough tensors to try every combination, as composite compliance does."""
    return [one for one in found if len(list(tensors_in([one.input, one.args, one.kwargs]))) <= MOST_TENSORS]


def compare_check(name: str, op: Any, limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Checks the first samples of an operation in float64."""
    return _same_end(
        partial(CHECKS[name][1], op), lambda: _few(samples(op, torch.float64, limit)), f"{name}: {op.name}", lens
    )


def compare_opcheck(op: Any, limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Runs `opcheck` on a custom operator."""
    return _same_end(partial(_opcheck, op), lambda: samples(op, torch.float32, limit), f"opcheck: {op.name}", lens)


def compare_module(make: Callable[[], Any], limit: int | None, lens: Lens = tensorlens.trace) -> Outcome:
    """Runs a case of `common_nn`, which is one sample."""

    def check(case: Any) -> None:
        case(ModuleTest())  # type: ignore[no-untyped-call]

    return _same_end(check, lambda: [make()][:limit], make().get_name(), lens)


def _same_end(check: Callable[[Any], Any], make: Callable[[], list[Any]], name: str, lens: Lens) -> Outcome:
    def observe(sample: Any, lens: Lens) -> Observed:
        seen: Observed = {"tensors": []}
        torch.manual_seed(5)
        with watched(seen), lens():
            attempt(lambda: check(sample), seen, "end")
        return {part: _ADDRESS.sub("0x", repr(value)) for part, value in seen.items()} | {"tensors": []}

    return compared(make, observe, name, lens)
