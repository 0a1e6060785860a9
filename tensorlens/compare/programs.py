"""Writes runnable scripts for the rows that write in place and run backward."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tensorlens.compare.comparison_records import Comparison, Input, Operand, Value
from tensorlens.compare.numbers import VALUES, flat, nested, sizes_and_strides
from tensorlens.errors import UsageError

PROGRAMS = ("earlier_use_then_backward", "write_result_then_backward", "write_source_then_backward")


def programs(comparison: Comparison, row: str) -> str:
    """Returns the program of a row for every operand, each with the measured answer.

    Raises:
        UsageError: there is no such row, or it has no program.
    """
    named = next((each for each in comparison.rows if row.strip() in (each.probe, each.label)), None)
    near = [each for each in comparison.rows if row.strip().lower() in each.label.lower()]
    chosen = named or next((each for each in near if each.probe in PROGRAMS), None)
    if chosen is None or chosen.probe not in PROGRAMS:
        labels = [f'"{each.label}"' for each in comparison.rows if each.probe in PROGRAMS]
        raise UsageError(f'no row "{row}" with a program to show; there are {", ".join(labels) or "none"}')
    parts = []
    for index, operand in enumerate(comparison.operands):
        answer = chosen.answers(index).get(comparison.main)
        head = f"# {chosen.label}: {answer.text if answer else 'not asked'}"
        result = _Result(_value(comparison, "returns", index), _value(comparison, "requires_grad", index))
        parts.append("\n".join([head, *_program(chosen.probe, operand, comparison.inputs[comparison.main], result)]))
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class _Result:
    returns: Value
    requires_grad: Value  # None if it is not a tensor


def _value(comparison: Comparison, probe: str, operand: int) -> Value:
    row = comparison.row(probe)
    return row.values[operand] if row else None


def _program(probe: str, operand: Operand, spec: Input, result: _Result) -> list[str]:
    call = _assigned(operand)
    if str(result.returns).startswith(("tuple of", "list of")):
        call.append("result = result[0]")
    write = "result += 1" if result.requires_grad is None else "result.add_(1)"
    roots = ["z"]
    lines = ["import copy, math", "import numpy as np", "import torch, torch.nn as nn, torch.nn.functional as F", ""]
    lines = (
        [lines[2], "", *_inputs(spec)]
        if not re.search(r"\b(np|numpy|copy|math)\b", operand.call)
        else [*lines, *_inputs(spec)]
    )
    if operand.kind == "file":
        path, name = operand.operand.rsplit(":", 1)
        lines = [f"import runpy; {name} = runpy.run_path({path!r})[{name!r}]", *lines]
    if re.search(r"\bdtype\b", operand.call):
        lines.append(f"dtype = torch.{'float32' if spec.dtype == 'float64' else 'float64'}")
    if re.search(r"\bdevice\b", operand.call):
        lines.append("device = x.device")
    if probe == "earlier_use_then_backward":
        lines += [_weight("x"), "z = x * w  # backward needs these values of x", *call]
    elif probe == "write_result_then_backward":
        lines += [*call, _weight("x"), "z = x * w  # backward needs these values of x", write]
        roots += ["result"] if result.requires_grad else []
    else:
        lines += [*call, _weight("result"), "z = result * w  # backward needs these values of the result"]
        leaf = spec.leaf and spec.requires_grad
        lines.append("with torch.no_grad(): x.add_(1)" if leaf else "x.add_(1)")
    lines.append(f"roots = [{', '.join(roots)}]")
    lines.append("torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])")
    leaves = ["w", *(["x" if spec.leaf else "leaf"] if spec.requires_grad else [])]
    return [*lines, *(f"print('gradient of {leaf}:', {leaf}.grad)" for leaf in leaves)]


def _inputs(spec: Input) -> list[str]:
    dtype = f", dtype=torch.{spec.dtype}" if spec.dtype != "float32" else ""
    dtype += f", device={spec.device!r}" if spec.device != "cpu" else ""
    numbers, second = (str(nested(flat(spec.shape, each), spec.shape)) for each in VALUES[spec.values])
    grad = ", requires_grad=True" if spec.requires_grad else ""
    name = "leaf" if spec.requires_grad and not spec.leaf else "x"
    lines = [f"{name} = torch.tensor({numbers}{dtype}{grad})", f"y = torch.tensor({second}{dtype}{grad})"]
    if spec.contiguous and not spec.view:
        return [*lines, "x = leaf.clone()"] if name == "leaf" else lines
    if name == "x":
        lines[0] = f"values = torch.tensor({numbers}{dtype})"
    source, (sizes, strides) = "leaf" if name == "leaf" else "values", sizes_and_strides(spec)
    made = f"torch.empty_strided({sizes}, {strides}{dtype})"
    lines.append(f"x = {made}.copy_({source}){'[1]' if spec.view else ''}")
    return [*lines, "x.requires_grad_()"] if name == "x" and spec.requires_grad else lines


def _weight(name: str) -> str:
    return f"w = torch.full({name}.shape, 2.0, requires_grad=True)"


def _assigned(operand: Operand) -> list[str]:
    """Returns the operand's code, with its result assigned to `result`."""
    call = operand.call
    context = re.fullmatch(r"(with .+): r = (.+)", call)
    if context:
        return [f"{context[1]}:", f"    result = {context[2]}"]
    try:
        compile(call, "<operand>", "eval")
    except SyntaxError:
        return [*call.split("; "), "result = x"]
    return [f"result = {call}"]


def names(comparison: Comparison) -> Sequence[str]:
    """Returns the labels of the rows that have a program."""
    return [row.label for row in comparison.rows if row.probe in PROGRAMS]
