"""Finds the cause of `custom-function-wrong-backward`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.returned_gradients import wrong_statements
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.custom_function_runs import backward_runs
from tensorlens.diagnostics.shared.silent_saved_tensor import backward_of
from tensorlens.diagnostics.shared.wording import finding, fix
from tensorlens.records.callbacks import Run
from tensorlens.records.further_runs import WrongBackward
from tensorlens.records.report import Diagnostic, Label

CODE = "custom-function-wrong-backward"
_SUMS = {
    "ones": "the outputs",
    "random": "the outputs, each times a random weight",
    "given": "the outputs, each times the gradient that reached it, which `backward` does not look at",
}
_CONTEXT_AND_GRADIENT = 2  # arguments of such a `backward`
_MOST_USES = 3  # lines
_PART = "part "  # then its index in the output, whose gradient `backward` ignores


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    wrong = {f"{formula.function}.apply": formula for formula in facts.trace.inspection.formulas}
    for run, call in backward_runs(facts) if wrong else ():
        formula = wrong.pop(call.op, None)
        if formula is not None:
            yield _report(facts, run, formula)


def _report(facts: TraceIndex, run: Run, formula: WrongBackward) -> Diagnostic:
    name, backward = f"`{formula.argument}`", backward_of(facts, run.index)
    got, right = _text(formula.backward), _text(formula.differences)
    return finding(
        CODE,
        "warning",
        f"`{formula.function}.backward` gives {name} {got} where its `forward` changes by {right}",
        "PyTorch takes what `backward` returns as the derivative, and does not check it",
        [
            facts.label("returned_here", run.returned, f"not the derivative by {name}"),
            None if backward is None else facts.label("needed_here", backward.site, "uses it"),
            *(_uses(facts, run) if formula.weights.startswith(_PART) else _made(facts, run, formula)),
        ],
        fixes=(
            fix(
                f"correct this formula; `torch.autograd.gradcheck` tests `{formula.function}.apply` in float64",
                place=facts.span(run.returned),
            ),
        ),
        detail=(f"measured by central differences: gradients of the sum of {_summed(formula.weights)}",),
        evidence={
            "function": formula.function,
            "backward": list(formula.backward),
            "forward": list(formula.differences),
        },
    )


def _summed(weights: str) -> str:
    if weights.startswith(_PART):
        return f"`output[{weights.removeprefix(_PART)}]`, whose gradient `backward` ignores"
    return _SUMS[weights]


def _made(facts: TraceIndex, run: Run, formula: WrongBackward) -> list[Label]:
    """Labels the lines of `backward` that make wrong derivatives, except from others that are wrong."""
    names = (formula.argument, *formula.others)
    found = wrong_statements(facts, facts.span(run.returned), names)
    return [Label("value_made_here", span, f"makes what is not the derivative by `{name}`") for name, span in found]


def _uses(facts: TraceIndex, run: Run) -> list[Label]:
    """Labels the lines of `backward` that use the gradient of the only output."""
    returned = facts.span(run.returned)
    function = None if returned is None else function_around(facts, returned.file, returned.line)
    if returned is None or function is None or len(function.args.args) != _CONTEXT_AND_GRADIENT:
        return []
    name = function.args.args[1].arg
    loads = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name)
    lines = {node.lineno: node for node in loads if isinstance(node.ctx, ast.Load)}
    return [
        Label("value_made_here", facts.span_of(lines[line], returned.file), f"uses `{name}`")
        for line in sorted(lines)[:_MOST_USES]
    ]


def _text(values: tuple[float, ...]) -> str:
    shown = [f"{value:.5g}" for value in values]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
