"""Probes that write in place and run backward (fine, an error, or silently wrong), or ask where a call is allowed.

The right gradients come from a second run in which autograd saves copies of tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorlens.compare.comparison_records import Answer
from tensorlens.compare.probe import measured_text
from tensorlens.compare.probe.probes.registry import allowed, probe

if TYPE_CHECKING:
    from tensorlens.compare.probe.bench import Bench, Trial

Write = Callable[[Any], None]
Program = Callable[
    [Callable[[], "Trial"], Write, Any], tuple[list[Any], list[Any]]
]  # (run the operand, write a tensor, subject) -> (roots, leaves)


@probe("x used before the call, backward after", "writing")
def earlier_use_then_backward(bench: Bench) -> Answer:
    """`z = x * w`, then the call, then backward of z: does the call change a tensor that autograd saved?"""

    def program(trial_of: Callable[[], Trial], write: Write, subject: Any) -> tuple[list[Any], list[Any]]:
        weight = bench.weight_like(subject.x)
        product = subject.x * weight
        trial_of()
        return [product], [weight]

    return _against_reference(bench, program)


@probe("result written, then backward", "writing", level="basic")
def write_result_then_backward(bench: Bench) -> Answer | None:
    """`z = x * w`, then `result.add_(1)`, then backward of z and of the result: fine, an error, or silently wrong?"""

    def program(trial_of: Callable[[], Trial], write: Write, subject: Any) -> tuple[list[Any], list[Any]]:
        trial = trial_of()
        weight = bench.weight_like(trial.x)
        product = trial.x * weight
        target = trial.result if trial.result is not None else trial.returned
        write(target)
        return [product, *([target] if getattr(target, "requires_grad", False) else [])], [weight]

    return _against_reference(bench, program) if _has_memory(bench) else None


@probe("x written, then backward", "writing")
def write_source_then_backward(bench: Bench) -> Answer | None:
    """`z = result * w`, then `x.add_(1)`, then backward of z: fine, an error, or silently wrong?"""

    def program(trial_of: Callable[[], Trial], write: Write, subject: Any) -> tuple[list[Any], list[Any]]:
        trial = trial_of()
        assert trial.result is not None
        weight = bench.weight_like(trial.result)
        product = trial.result * weight
        with bench.no_grad() if trial.x.is_leaf and trial.x.requires_grad else contextlib.nullcontext():
            write(trial.x)
        return [product], [weight]

    return _against_reference(bench, program) if bench.trial().result is not None else None


@probe("result used in a graph", "writing", everywhere=False)
def use_in_graph(bench: Bench) -> Answer | None:
    """Can the result be used in a graph afterwards: `z = result * w`, then backward?"""
    result = bench.trial().result
    if result is None:
        return None
    weight = bench.weight_like(result)
    bench.backward([result * weight])
    return Answer("fine", "fine")


@probe("allowed on a leaf that requires grad", "writing", everywhere=False)
def allowed_on_leaf_requiring_grad(bench: Bench) -> Answer | None:
    """Does the call run when x is a leaf that requires grad?"""
    if not bench.may_require_grad:
        return None
    spec = replace(bench.spec, leaf=True, requires_grad=True)
    return allowed(lambda: bench.trial(spec))


@probe("allowed under no_grad", "writing", everywhere=False)
def allowed_under_no_grad(bench: Bench) -> Answer:
    """Does the call run under no_grad when x is a leaf that requires grad?"""
    subject = bench.subject(replace(bench.spec, leaf=True, requires_grad=bench.may_require_grad))
    with bench.no_grad():
        return allowed(lambda: bench.apply(subject))


def _against_reference(bench: Bench, program: Program) -> Answer:
    """Runs a program and its backward twice, the second time with copies of saved tensors, and compares gradients."""
    answer = _compared(bench, program)
    if answer.value == "silently wrong" and bench.uninitialized():
        with bench.memory_filled():  # else the two runs differ in their uninitialized memory
            return _compared(bench, program)
    return answer


def _compared(bench: Bench, program: Program) -> Answer:
    stage: list[str] = []
    try:
        got = _gradients(bench, program, lambda target: _write(bench, target), stage)
    except WriteRefusedError as refused:
        return measured_text.raised(refused.error, "the write raises an error", value="write refused")
    except Exception as error:
        return measured_text.raised(error, *stage)
    return bench.compare_gradients(got, _right(bench, program))


def _right(bench: Bench, program: Program) -> list[Any]:
    """Returns the right gradients: of a run with copies of saved tensors, or if that raises, without the write."""
    with bench.copies_saved():
        try:
            return _gradients(bench, program, lambda target: _write(bench, target), [])
        except Exception:
            return _gradients(bench, program, lambda target: None, [], around_call=bench.without_copies)


def _gradients(
    bench: Bench, program: Program, write: Write, stage: list[str], around_call: Any = contextlib.nullcontext
) -> list[Any]:
    subject = bench.subject()

    def trial_of() -> Trial:
        with around_call():
            return bench.apply(subject)

    roots, leaves = program(trial_of, write, subject)
    stage.append("error in backward")
    bench.backward(roots)
    leaves += [leaf for leaf in (subject.leaf, subject.y) if leaf is not None and leaf.is_leaf]
    return [leaf.grad for leaf in leaves]


class WriteRefusedError(Exception):
    """PyTorch raised an error for the write, so there is nothing to run backward for."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _write(bench: Bench, target: Any) -> None:
    try:
        bench.write(target)
    except Exception as error:
        raise WriteRefusedError(error) from error


def _has_memory(bench: Bench) -> bool:
    trial = bench.trial()
    return trial.result is not None or bench.overlap(trial.returned, trial.x) is not None
