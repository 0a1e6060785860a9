"""Which calls and which inputs to compare: the first on which every operand runs, sought from the simplest on."""

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

OTHER_DTYPES = ("int64", "complex64")  # tried where no shape of the usual one will do


@dataclass(slots=True)
class Attempt:
    """One kind of input, and what became of every operand on it. `given`: calls that were found elsewhere."""

    options: Mapping[str, Any]
    shape: tuple[int, ...]
    given: Mapping[int, str] = field(default_factory=dict)
    found: list[Resolved | Unresolved] = field(default_factory=list)

    @property
    def specs(self) -> list[Input]:
        return inputs.inputs_for(self.shape, self.options)

    @property
    def unresolved(self) -> list[int]:
        return [index for index, each in enumerate(self.found) if isinstance(each, Unresolved)]


def choose(
    texts: Sequence[str], options: Mapping[str, Any], crashed: Collection[int], begin: Callable[[int, str], bool]
) -> tuple[list[Resolved], list[Input]]:
    """The operands' calls and the inputs for them; UsageError where an operand can't be run as it was written.

    `begin` is told the index and the call of each operand before it is tried and says whether it may be; the operands
    in `crashed` are not tried at all.
    """
    inputs.check_device(options.get("device") or "cpu")
    best = _best(texts, options, crashed, begin)
    resolved = [each if isinstance(each, Resolved) else _failing(each) for each in best.found]
    able = [index for index in range(len(texts)) if index not in crashed and index not in best.unresolved]
    running = {index: resolved[index] for index in able}
    cast = any(_casts(each, best.specs) for each in running.values())
    return resolved, _main_first(running, inputs.inputs_for(best.shape, best.options, cast), begin)


def _casts(resolved: Resolved, specs: Sequence[Input]) -> bool:
    """Whether an operand gives its usual dtype for an x of float64 too, as `x.float()` does."""
    double = next((spec for spec in specs if spec.id == "float64"), None)
    if double is None or not (_runs(resolved, double) and _runs(resolved, specs[0])):
        return False
    with settings.restored():
        usual, found = (first_tensor(resolved.code(inputs.make(spec))) for spec in (specs[0], double))
    return usual is not None and found is not None and usual.dtype == found.dtype == inputs.dtype_of(specs[0].dtype)


def _best(
    texts: Sequence[str], options: Mapping[str, Any], crashed: Collection[int], begin: Callable[[int, str], bool]
) -> Attempt:
    """The first attempt in which every operand ran and gave numbers; else in which every one ran; else the most."""
    tried: list[Attempt] = []

    def run(attempt: Attempt) -> bool:
        for index, text in enumerate(texts):
            skipped = index in crashed
            found = operands.skipped(text) if skipped else _resolve(attempt, index, text, partial(begin, index))
            attempt.found.append(found)
        tried.append(attempt)
        return not attempt.unresolved

    positive = {**options, "values": "positive"}
    for attempts in (_usual(texts, options), _sampled(texts, options, tried), _usual(texts, positive)):
        for attempt in attempts:
            if not run(attempt):
                continue
            between = Attempt({**options, "values": "positive"}, attempt.shape, attempt.given)
            if (
                attempt.options.get("values") != "positive"
                and not _finite(attempt)
                and run(between)
                and _finite(between)
            ):
                return between
            return attempt
    return min(tried, key=lambda attempt: len(attempt.unresolved))


def _usual(texts: Sequence[str], options: Mapping[str, Any]) -> Iterator[Attempt]:
    """Inputs of every shape, then of other dtypes, as far as the user left them open."""
    wanted = [typed_operands.SHAPES[text] for text in texts if text in typed_operands.SHAPES]
    shapes = (*wanted[:1], *inputs.SHAPES) if options.get("shape") is None else [tuple(options["shape"])]
    for shape in shapes:
        yield Attempt(options, shape)
    for dtype in OTHER_DTYPES if options.get("dtype") is None else ():
        yield Attempt({**options, "dtype": dtype}, shapes[0])


def _finite(attempt: Attempt) -> bool:
    """Whether what every operand gives for the first of the inputs that it runs on are numbers, and not NaN."""
    return all(_gives_numbers(each, attempt.specs) for each in attempt.found if isinstance(each, Resolved))


def _gives_numbers(resolved: Resolved, specs: Sequence[Input]) -> bool:
    for spec in specs:
        if _runs(resolved, spec):
            with settings.restored():
                settings.seed()
                result = first_tensor(resolved.code(inputs.make(spec)))
            return result is None or not (differentiable(result.dtype) and _has_nan(result))
    return True


def _has_nan(result: torch.Tensor) -> bool:
    try:
        return not bool(result.detach().isfinite().all())
    except Exception:
        return False


def _sampled(texts: Sequence[str], options: Mapping[str, Any], tried: Sequence[Attempt]) -> Iterator[Attempt]:
    """What torch tests itself with, for the operands that ran on none of the usual inputs."""
    for index in range(len(texts)):
        known = not all(index in attempt.unresolved for attempt in tried)
        if known or not texts[index].replace(".", "").isidentifier():
            continue
        for shape, call in samples(texts[index]):
            if options.get("shape") in (None, list(shape)):
                yield Attempt(options, shape, {index: call})


def _resolve(attempt: Attempt, index: int, text: str, begin: Callable[[str], bool]) -> Resolved | Unresolved:
    begin(text)  # reading it may run a file
    plain = inputs.inputs_for(attempt.shape, {})[0]
    single = [spec for spec in attempt.specs if "+" not in spec.id]
    subjects = [partial(inputs.make, spec) for spec in (*single, plain)]
    if index in attempt.given and begin(attempt.given[index]):
        sampled = operands.read(text, attempt.given[index], "function")
        if any(_runs(sampled, spec) for spec in attempt.specs):
            return sampled
    found = operands.resolve(text, subjects, begin)
    if isinstance(found, Unresolved) and found.first.operand.kind == "code":
        _failing(found)
    return found


def _failing(found: Unresolved) -> Resolved:
    """An operand that raises everywhere is measured as such, unless what raises is how it is written."""
    operand, error = found.first.operand, found.error
    if found.advice and operand.call.endswith(("()", "(x)")) and isinstance(error, TypeError):
        raise UsageError(f"no arguments found for {operand.operand}: {found.advice}")
    if isinstance(error, operands.MISTAKES):
        call, said = measured_text.one_line(operand.call), measured_text.raised(error).error
        raise UsageError(f'can\'t run "{call}": {said}{operands.nearest(error)}')
    return found.first


def _main_first(resolved: Mapping[int, Resolved], specs: list[Input], begin: Callable[[int, str], bool]) -> list[Input]:
    """Put the first input that every operand runs on in front: what is asked once is asked there."""
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
