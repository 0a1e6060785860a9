"""The aliasing probes against the alias annotations of torch's own operator schemas, over all ops with sample inputs.

Every day the first samples of each op; with TENSORLENS_FULL=1 all of them, of real and of complex numbers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest
import torch

from tensorlens.compare.comparison_records import Input
from tensorlens.compare.probe.bench import Bench
from tensorlens.compare.probe.code import Code
from tensorlens.compare.probe.inputs import Subject
from tensorlens.compare.probe.probes import result
from tensorlens.compare.probe.samples import operations

FULL = bool(os.environ.get("TENSORLENS_FULL"))
DTYPES = (torch.float32, torch.complex64) if FULL else (torch.float32,)
SAMPLES = None if FULL else 2

UNDECLARED = "the schema says new memory, and in some cases the op gives x or its memory back, or writes it"
MAY = "the schema says that the result may share memory; here torch has to copy"
OTHER_OP = "the sample calls something else than the schema of this name: the in-place method, or on a copy"

# (op, what the schema says, what is measured): why the measurement is right
EXCEPTIONS = {
    ("atleast_1d", "new", "alias"): UNDECLARED,
    ("atleast_2d", "new", "alias"): UNDECLARED,
    ("atleast_3d", "new", "alias"): UNDECLARED,
    ("conj_physical", "new", "alias"): UNDECLARED,  # of a real x: x itself
    ("nn.functional.alpha_dropout", "new", "alias"): UNDECLARED,  # p=0
    ("nn.functional.dropout", "new", "alias"): UNDECLARED,  # p=0, or not training
    ("nn.functional.feature_alpha_dropout", "new", "alias"): UNDECLARED,
    ("nn.functional.embedding", "new", "writes"): UNDECLARED,  # max_norm: the weights are renormalised in place
    ("nn.functional.embedding_bag", "new", "writes"): UNDECLARED,
    ("sum_to_size", "new", "alias"): UNDECLARED,  # of x's own size: x itself
    ("unsafe_chunk", "new", "alias"): UNDECLARED,  # which is what makes it unsafe
    ("unsafe_split", "new", "alias"): UNDECLARED,
    ("masked.prod", "new", "alias"): OTHER_OP,
    ("cauchy", "new", "writes"): OTHER_OP,
    ("exponential", "new", "writes"): OTHER_OP,
    ("geometric", "new", "writes"): OTHER_OP,
    ("log_normal", "new", "writes"): OTHER_OP,
    ("normal", "new", "writes"): OTHER_OP,
    ("uniform", "new", "writes"): OTHER_OP,
    ("resize_", "writes", "new"): OTHER_OP,
    ("resize_as_", "writes", "new"): OTHER_OP,
    ("zero_", "writes", "new"): OTHER_OP,
    ("ravel", "alias", "new"): MAY,
    ("to", "alias", "new"): MAY,
}

SELDOM = {  # exceptions that the first samples do not show
    ("nn.functional.embedding", "new", "writes"),
    ("nn.functional.embedding_bag", "new", "writes"),
    ("ravel", "alias", "new"),
    ("sum_to_size", "new", "alias"),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The samples are small: threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class SampleBench(Bench):
    """A bench whose inputs are one of torch's samples instead of our own."""

    def __init__(self, call: Callable[..., Any], sample: Any) -> None:
        x = sample.input
        dtype = str(x.dtype).removeprefix("torch.")
        super().__init__(Code("x"), Input("sample", "x", (2,), dtype, "cpu", False, True))
        self._code = lambda subject: call(subject.x, *sample.args, **sample.kwargs)  # type: ignore[assignment]
        self._source = x

    def subject(self, spec: Input | None = None) -> Subject:
        x = self._source.detach()
        dense = x.layout == torch.strided and 0 not in x.stride()
        fresh = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x) if dense else x.clone()
        return Subject(fresh, fresh, None)


def declared(name: str) -> set[str]:
    """Reads the schemas of an op: it writes its first argument, returns (maybe) an alias of it, or a new tensor."""
    said = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        takes_tensor = bool(schema.arguments) and str(schema.arguments[0].type) == "Tensor"
        if not takes_tensor or not schema.returns or any(argument.is_out for argument in schema.arguments):
            continue
        own = schema.arguments[0].alias_info
        returned = any(each.alias_info for each in schema.returns)
        said.add("writes" if own and own.is_write else "alias" if own and returned else "new")
    return said


def measured(bench: Bench, in_place: bool) -> str:
    changes, shares = result.changes_source(bench), result.shares_storage(bench)
    if (changes and changes.value) or (in_place and returns_x(bench)):
        return "writes"
    return "alias" if shares and shares.value else "new"


def returns_x(bench: Bench) -> bool:
    same = result.same_object(bench)
    return bool(same and same.value)


def cases() -> Iterator[tuple[str, str, Callable[..., Any], Any]]:
    """(op, its name among the schemas, what calls it, its OpInfo), in place too where there is such a variant."""
    for info in operations():
        name = (info.aten_name or info.name).rpartition(".")[2]
        yield info.name, name, info.op, info
        if info.inplace_variant is not None:
            yield info.name, f"{name}_", info.inplace_variant, info


def checked(call: Callable[..., Any], info: Any, in_place: bool) -> Iterator[tuple[str, bool | None]]:
    """(what is measured, whether autograd calls it a view) for the samples that run."""
    for dtype in DTYPES:
        if not info.supports_dtype(dtype, "cpu"):
            continue
        for sample in islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
            if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
                continue
            bench = SampleBench(call, sample)
            try:
                view = result.is_view(bench)
                yield measured(bench, in_place), None if view is None else bool(view.value)
            except (RuntimeError, ValueError, NotImplementedError):
                continue  # a sample for another device, layout or dtype, or one that can't be done in place


@pytest.mark.filterwarnings("ignore")
def test_the_aliasing_probes_agree_with_the_schemas_of_every_op() -> None:
    with ThreadPoolExecutor(1) as thread:  # making a sample walks the whole stack, and that of a test is deep
        agreed, seen, wrong = thread.submit(_agreement).result()
    assert not wrong
    assert agreed > 1000
    assert seen >= EXCEPTIONS.keys() - (set() if FULL else SELDOM), (
        "an exception that is none any more is to be removed"
    )


def _agreement() -> tuple[int, set[tuple[str, str, str]], list[tuple[str, str, str, str]]]:
    agreed, seen = 0, set()
    wrong = []
    for op, name, call, info in cases():
        said = declared(name)
        if len(said) != 1:
            continue
        (expected,) = said
        for found, _ in checked(call, info, expected == "writes"):
            if found == expected:
                agreed += 1
            elif (op, expected, found) in EXCEPTIONS:
                seen.add((op, expected, found))
            else:
                wrong.append((op, name, expected, found))
    return agreed, seen, wrong


NO_VIEW = {  # share memory without being views for autograd
    "detach",
}


@pytest.mark.filterwarnings("ignore")
def test_what_shares_memory_by_its_schema_is_a_view_for_autograd() -> None:
    wrong = []
    for op, name, call, info in cases():
        if declared(name) != {"alias"} or op in NO_VIEW:
            continue
        for sample in islice(info.sample_inputs("cpu", torch.float32, requires_grad=False), 2):
            if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
                continue
            bench = SampleBench(call, sample)
            try:
                shares, view, same = result.shares_storage(bench), result.is_view(bench), returns_x(bench)
            except (RuntimeError, ValueError):
                continue
            if shares and shares.value and not same and view and not view.value:
                wrong.append((op, tuple(sample.input.shape)))
    assert not wrong


def test_loading_the_samples_leaves_no_stand_in_behind() -> None:
    assert operations()
    assert "expecttest" not in sys.modules or sys.modules["expecttest"].__file__
