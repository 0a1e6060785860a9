"""Chooses the calls and inputs to compare: the simplest inputs on which every operand runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from tensorlens.compare.comparison_records import Input
from tensorlens.compare.probe import inputs, measured_text, operands, settings, typed_operands
from tensorlens.compare.probe.inputs import differentiable
from tensorlens.compare.probe.operands import Resolved, Unresolved
from tensorlens.compare.probe.outcome import first_tensor
from tensorlens.compare.probe.samples import samples
from tensorlens.errors import UsageError

OTHER_DTYPES = ("int64", "complex64")  # tried if no shape of the usual dtype works


@dataclass(slots=True)
class Attempt:
    """One shape and set of options, and the operands resolved on such inputs. `calls` has the calls that are known from
    samples, by operand."""

    options: Mapping[str, Any]
    shape: tuple[int, ...]
    calls: Mapping[int, str] = field(default_factory=dict)
    operands: list[Resolved | Unresolved] = field(default_factory=list)

    @property
    def specs(self) -> list[Input]:
        return inputs.inputs_for(self.shape, self.options)

    @property
    def unresolved(self) -> list[int]:
        return [index for index, each in enumerate(self.operands) if isinstance(each, Unresolved)]


def choose(
    texts: Sequence[str], options: Mapping[str, Any], crashed: Collection[int], begin: Callable[[int, str], bool]
) -> tuple[list[Resolved], list[Input]]:
    """Returns the operands' calls and the inputs for them.

    `begin` is called with an operand's index and call before it is tried, and returns whether it may be. Operands in
    `crashed` are not tried.

    Raises:
        UsageError: an operand can't be run as it was typed.
    """
    inputs.check_device(options.get("device") or "cpu")
    best = _best(texts, options, crashed, begin)
    resolved = [each if isinstance(each, Resolved) else _failing(each) for each in best.operands]
    runnable = [index for index in range(len(texts)) if index not in crashed and index not in best.unresolved]
    running = {index: resolved[index] for index in runnable}
    cast = any(_casts(each, best.specs) for each in running.values())
    return resolved, _main_first(running, inputs.inputs_for(best.shape, best.options, cast), begin)


def _casts(resolved: Resolved, specs: Sequence[Input]) -> bool:
    """Returns whether an operand casts, as `x.float()` does: it returns the usual dtype for a float64 x too."""
    double = next((spec for spec in specs if spec.id == "float64"), None)
    if double is None or not (_runs(resolved, double) and _runs(resolved, specs[0])):
        return False
    with settings.restored():
        usual, of_double = (first_tensor(resolved.code(inputs.make(spec))) for spec in (specs[0], double))
    if usual is None or of_double is None:
        return False
    return usual.dtype == of_double.dtype == inputs.dtype_of(specs[0].dtype)


def _best(
    texts: Sequence[str], options: Mapping[str, Any], crashed: Collection[int], begin: Callable[[int, str], bool]
) -> Attempt:
    """Returns the first attempt in which every operand runs, or, if only that gives finite results,
    the same with positive numbers. If there is none, returns the attempt in which most operands run."""
    tried: list[Attempt] = []

    def run(attempt: Attempt) -> bool:
        for index, text in enumerate(texts):
            if index in crashed:
                attempt.operands.append(operands.skipped(text))
            else:
                attempt.operands.append(_resolve(attempt, index, text, partial(begin, index)))
        tried.append(attempt)
        return not attempt.unresolved

    positive = {**options, "values": "positive"}
    for attempts in (_usual(texts, options), _sampled(texts, options, tried), _usual(texts, positive)):
        for attempt in attempts:
            if not run(attempt):
                continue
            with_positive = Attempt({**options, "values": "positive"}, attempt.shape, attempt.calls)
            if (
                attempt.options.get("values") != "positive"
                and not _finite(attempt)
                and run(with_positive)
                and _finite(with_positive)
            ):
                return with_positive
            return attempt
    return min(tried, key=lambda attempt: len(attempt.unresolved))


def _usual(texts: Sequence[str], options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Yields attempts with every shape, then with other dtypes, unless the user fixed the shape or the dtype."""
    wanted = [typed_operands.SHAPES[text] for text in texts if text in typed_operands.SHAPES]
    shapes = (*wanted[:1], *inputs.SHAPES) if options.get("shape") is None else [tuple(options["shape"])]
    for shape in shapes:
        yield Attempt(options, shape)
    for dtype in OTHER_DTYPES if options.get("dtype") is None else ():
        yield Attempt({**options, "dtype": dtype}, shapes[0])


def _finite(attempt: Attempt) -> bool:
    """Returns whether every operand gives a finite result on the first input that it runs on."""
    return all(_is_finite(each, attempt.specs) for each in attempt.operands if isinstance(each, Resolved))


def _is_finite(resolved: Resolved, specs: Sequence[Input]) -> bool:
    for spec in specs:
        if _runs(resolved, spec):
            with settings.restored():
                settings.seed()
                result = first_tensor(resolved.code(inputs.make(spec)))
            return result is None or not (differentiable(result.dtype) and _has_nonfinite(result))
    return True


def _has_nonfinite(result: torch.Tensor) -> bool:
    try:
        return not bool(result.detach().isfinite().all())
    except Exception:
        return False


def _sampled(texts: Sequence[str], options: Mapping[str, Any], tried: Sequence[Attempt]) -> Iterator[Attempt]:
    """Yields attempts from the samples of torch's own tests, for operands that ran on none of the usual inputs."""
    for index in range(len(texts)):
        has_run = not all(index in attempt.unresolved for attempt in tried)
        if has_run or not texts[index].replace(".", "").isidentifier():
            continue
        for shape, call in samples(texts[index]):
            if options.get("shape") in (None, list(shape)):
                yield Attempt(options, shape, {index: call})


def _resolve(attempt: Attempt, index: int, text: str, begin: Callable[[str], bool]) -> Resolved | Unresolved:
    begin(text)  # reading it may run a file
    plain = inputs.inputs_for(attempt.shape, {})[0]
    single = [spec for spec in attempt.specs if "+" not in spec.id]
    subjects = [partial(inputs.make, spec) for spec in (*single, plain)]
    if index in attempt.calls and begin(attempt.calls[index]):
        sampled = operands.read(text, attempt.calls[index], "function")
        if any(_runs(sampled, spec) for spec in attempt.specs):
            return sampled
    resolved = operands.resolve(text, subjects, begin)
    if isinstance(resolved, Unresolved) and resolved.first.operand.kind == "code":
        _failing(resolved)
    return resolved


def _failing(unresolved: Unresolved) -> Resolved:
    """Returns an operand that raises on all inputs, so that its error is measured.

    Raises:
        UsageError: the error is a mistake in the operand's text.
    """
    operand, error = unresolved.first.operand, unresolved.error
    if unresolved.advice and operand.call.endswith(("()", "(x)")) and isinstance(error, TypeError):
        raise UsageError(f"no arguments found for {operand.operand}: {unresolved.advice}")
    if isinstance(error, operands.MISTAKES):
        call, message = measured_text.one_line(operand.call), measured_text.raised(error).error
        raise UsageError(f'can\'t run "{call}": {message}{operands.nearest(error)}')
    return unresolved.first


def _main_first(resolved: Mapping[int, Resolved], specs: list[Input], begin: Callable[[int, str], bool]) -> list[Input]:
    """Moves the first input that every operand runs on to the front: it is the main input, where all probes ask."""
    for spec in specs:
        if all(begin(index, each.operand.call) and _runs(each, spec) for index, each in resolved.items()):
            return [spec, *(other for other in specs if other is not spec)]
    return specs


def _runs(resolved: Resolved, spec: Input) -> bool:
    try:
        with settings.restored():
            resolved.code(inputs.make(spec))
    except Exception:
        return False
    return True
