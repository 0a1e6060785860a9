"""Finds arguments for an operation, as source text, from the types and names of its parameters.

The types come from operator schemas, the names from `torch.overrides` and Python signatures. The caller tries the
candidates until one runs. No rule is about a single operation: parameters with the same name and type get the same
candidates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import torch
from torch import overrides

MAX_TRIES = 150  # per overload

BY_NAME = {
    "dim0": ("0",), "axis0": ("0",), "source": ("0",), "dim1": ("1",), "axis1": ("1",), "destination": ("1",),
    "dtype": ("dtype",), "device": ("device",), "cls": ("torch.Tensor",),
    "dim": ("0", "(0, 1)", "-1"), "axis": ("0",), "dims": ("(0,)", "(1, 0)", "(0, 1)"),
    "index": ("torch.tensor([0, 1])", "torch.zeros_like(x, dtype=torch.int64)"),
    "indices": ("torch.tensor([0, 1])", "torch.zeros_like(x, dtype=torch.int64)", "(torch.tensor([0, 1]),)", "2"),
    "mask": ("x > 0.3",), "condition": ("x > 0.3",),
    "size": ("(-1,)", "(2, *x.shape)", "x.shape"), "shape": ("(-1,)", "(2, *x.shape)", "x.shape"),
    "sizes": ("(-1,)", "(2, *x.shape)", "(-1, 1)"), "repeats": ("(2, 1, 1)", "2"), "repeat": ("(2, 1, 1)",),
    "stride": ("x.stride()", "1"), "split_size": ("1",), "split_sizes": ("(1, 2)",), "split_size_or_sections": ("1",),
    "batch1": ("x.new_ones(2, *x.shape)",), "batch2": ("x.new_ones(2, *x.shape)",),
    "chunks": ("2",), "sections": ("1",), "start": ("0",), "length": ("2",),
}  # fmt: skip

BY_TYPE = {
    "Tensor": (
        "y",
        "y.mT",
        "x.new_ones(x.shape[-1])",
        "x.new_ones(x.shape[-1], x.shape[-1])",
        "torch.zeros_like(x, dtype=torch.int64)",
        "torch.tensor(0.5)",
    ),
    "number": ("2", "0.5"),
    "int": ("1", "2", "0"),
    "float": ("0.5",),
    "bool": ("True",),
    "str": ("'mean'", "'ij'"),
    "List[int]": ("(0,)", "(2, 2)", "1", "(1, 1, 1)"),
    "List[float]": ("(0.5,)",),
    "List[Tensor]": ("(x, y)",),
    "List[Optional[Tensor]]": ("(torch.tensor([0, 1]),)",),
    "Device": ("device",),
    "": ("y", "2", "0", "(0,)", "torch.zeros_like(x, dtype=torch.int64)"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str  # "" if only the name is known
    required: bool
    keyword: bool


def argument_lists(name: str, function: Callable[..., Any], method: bool = False) -> Iterator[str]:
    """Yields argument lists to try for `function`, the likeliest first. Those of a `method` leave out the tensor."""
    for parameters in sorted(_overloads(name, function), key=lambda each: sum(p.required for p in each)):
        rest = _without_self(parameters) if method else parameters
        required = [p for p in rest if p.required]
        optional = [p for p in rest if not p.required and not p.keyword]
        for extra in range(min(2, len(optional)) + 1):
            wanted = required + optional[:extra]
            if wanted:
                yield from islice((", ".join(each) for each in product(*map(_choices, wanted))), MAX_TRIES)


def signature_text(name: str, function: Callable[..., Any]) -> str:
    """Returns the required parameters of a method as text for a message: `size`, or `...` if they are unknown."""
    for parameters in _overloads(name, function):
        return ", ".join(p.name for p in _without_self(parameters) if p.required) or "..."
    return "..."


def _without_self(parameters: list[Parameter]) -> list[Parameter]:
    """Removes the tensor itself from the parameters; in `where(condition, self, other)` it is not the first."""
    own = next((p for p in parameters if p.name == "self"), parameters[0] if parameters else None)
    return [p for p in parameters if p is not own]


def _choices(parameter: Parameter) -> list[str]:
    named = BY_NAME.get(parameter.name, ())
    if parameter.type == "Tensor":
        named = tuple(text for text in named if text.startswith(("torch.", "x ")))
    typed = BY_TYPE.get(parameter.type, BY_TYPE[""])
    choices = list(dict.fromkeys((*named, *typed)))
    return [f"{parameter.name}={choice}" for choice in choices] if parameter.keyword else choices


def _overloads(name: str, function: Callable[..., Any]) -> list[list[Parameter]]:
    schemas = [_from_schema(schema) for schema in _schemas(name)]
    return [each for each in schemas if each] or _from_signature(function)


def _schemas(name: str) -> list[Any]:
    try:
        return list(torch._C._jit_get_schemas_for_operator(f"aten::{name}"))
    except (AttributeError, RuntimeError):
        return []


def _from_schema(schema: Any) -> list[Parameter]:
    if any(argument.is_out for argument in schema.arguments):
        return []
    return [
        Parameter(
            argument.name,
            str(argument.type).removeprefix("Optional[").removesuffix("]")
            if str(argument.type).startswith("Optional[")
            else str(argument.type),
            not argument.has_default_value(),
            argument.kwarg_only,
        )
        for argument in schema.arguments
    ]


def _from_signature(function: Callable[..., Any]) -> list[list[Parameter]]:
    try:
        signature = inspect.signature(overrides.get_testing_overrides().get(function, function))
    except (TypeError, ValueError):
        return []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        [
            Parameter(each.name, "", each.default is inspect.Parameter.empty, False)
            for each in signature.parameters.values()
            if each.kind in plain
        ]
    ]
