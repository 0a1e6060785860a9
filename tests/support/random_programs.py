"""Makes small random programs that run without an error, and records what each of their lines really does.

`program(seed)` is the source. `truth(source)` runs it plainly, with a snapshot of every tensor that it can name before
and after each run of each statement.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

MODULES = ("net", "norm", "twin")
NAMES = "abcdefgh"
SIMPLE = (
    "{n} = torch.full((S,), 1.5)", "{n} = torch.arange(1.0, S + 1)",
    "{n} = torch.full((S,), 0.5, requires_grad=True)", "{n} = torch.nn.Parameter(torch.full((S,), 2.0))",
    "{n} = torch.full((S,), 2.0).requires_grad_()", "{n} = {a} * {b}", "{n} = {a} + {b} * 2", "{n} = {a} * 2",
    "{n} = {a}.sigmoid()", "{n} = ({a} + {b}).tanh() * {c}", "{n} = {a}.exp() + {b}.sum()",
    "{n} = {a}.detach() * 4 + {b}", "{n} = {a} * {a}", "{n} = {a}.cos().sin().exp().tanh()",
    "{n} = torch.zeros(S).copy_({a})", "{n} = torch.where({a} > 0, {a}, {b})", "{n} = {a}.clone()",
    "{n} = {a}.detach()", "{n} = {a}.data", "{n} = {a}.view(-1)", "{n} = {a}[:]", "{n} = {a}.detach().clone()",
    "{n} = {a}[1:]", "{n} = {a}[:2]", "{n} = {a}.unsqueeze(0)[0]", "{n} = {a}.view(1, -1).sum(0)", "{n} = {a}",
    "{n} = copy.deepcopy({a})", "{n}, {m} = {a} * 2, {b} + 1", "{n}, {m} = ({a} * 2).chunk(2)",
    "{n} = {a}.max(0).indices * 1.0", "{n} = ({a} * 2).detach()", "{n} = ({a} > 0).float()",
    "{n} = [{a}.exp(), {b}]", "{n} = {a}.abs().sqrt_()", "{a}.add_(1)", "{a}.mul_({b})", "{a} += 1", "{a} *= {b}",
    "{a}[0] = 7.0", "{a}[0] = {b}[1]", "{a}.data.add_(1)", "{a}.data = {a}.data * 2", "{a}.detach().sub_(3)",
    "{a}.detach_()", "{a}.requires_grad_()", "{a}.requires_grad_(False)", "{a}.retain_grad()", "{a}.copy_({b})",
    "{a}.view(-1).mul_(3)", "{a}.add_(1).mul_(2)", "{a}[1:].add_({b}[1:])", "torch.sigmoid({a}, out={b})",
    "{a}.sum().backward()", "({a} * {b}).sum().backward()", "({a} * 2 + {b}).sum().backward(retain_graph=True)",
    "({a} * 0 + {b}).sum().backward()", "({a} * {a}).sum().backward(create_graph=True)",
    "{n} = torch.autograd.grad(({a} * {b}).sum(), {a})[0]",
    "torch.autograd.grad({a}.sum(), [{b}], retain_graph=True)", "{a}.grad = None", "{a}.grad.zero_()",
    "{a}.grad.mul_(2)", "{n} = {a}.grad", "{a}.grad = {b}.detach().clone()",
    "torch.nn.utils.clip_grad_norm_([{a}, {b}], 1.0)", "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)",
    "net = torch.nn.Linear(S, S)",
    "net = torch.nn.Sequential(torch.nn.Linear(S, S), torch.nn.ReLU(), torch.nn.Linear(S, S))",
    "norm = torch.nn.BatchNorm1d(S)", "twin = copy.deepcopy(net)", "net.requires_grad_(False)",
    "net.requires_grad_()", "{n} = net({a})", "{n} = norm({a}.repeat(4, 1)).sum(0)", "net({a}).sum().backward()",
    "norm({a}.repeat(4, 1)).square().sum().backward()", "(net({a}) - {b}).square().mean().backward()",
    "net.load_state_dict(copy.deepcopy(net.state_dict()))", "kept = copy.deepcopy(net.state_dict())",
    "twin.load_state_dict(net.state_dict())", "net.zero_grad()", "params = list(net.parameters())",
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
    "opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
    "opt = torch.optim.Adam([*net.parameters()], lr=0.1)", "opt.step()", "opt.zero_grad()",
    "opt.zero_grad(set_to_none=False)", "float({a}.sum())", "{a}.tolist()", "{a}.sum().item()",
)  # fmt: skip
HEADS = (
    "with torch.no_grad():", "with torch.enable_grad():", "for i in range({k}):", "for i in range({k}):",
    "for p in net.parameters():", "if {a}.sum() > -1e30:", "with torch.set_grad_enabled(False):", "def f(x, y):",
)  # fmt: skip
IN_PARAMETERS = (
    "p.data.sub_(0.1)",
    "p.grad.mul_(0.5)",
    "p.data.sub_(0.1 * p.grad)",
    "p.grad = None",
    "p.requires_grad_()",
)
IN_FUNCTION = ("z = x * y", "z = x.sigmoid()", "x.add_(1)", "z = x.detach()", "z = x.view(-1)", "z = (x + y).exp() * x")


def program(seed: int, statements: int = 18) -> str:
    """Returns a random program. Lines that raise are left out."""
    draw = random.Random(seed)
    size = draw.choice((3, 40))
    lines = ["import copy", "import torch", "torch.manual_seed(1)", f"S = {size}"]
    lines += ["a = torch.full((S,), 0.25, requires_grad=True)", "b = torch.full((S,), 3.0)"]
    if draw.random() < 0.5:
        lines += ["net = torch.nn.Linear(S, S)", draw.choice([line for line in SIMPLE if line.startswith("opt = ")])]
    training = [line for line in SIMPLE if any(word in line for word in ("net", "opt", "norm", "twin"))]
    names = ["a", "b"]
    for _ in range(20 * statements):
        kinds = training if "net = torch.nn.Linear(S, S)" in lines and draw.random() < 0.4 else SIMPLE
        added = _block(draw, names) if draw.random() < 0.2 else [_filled(draw, draw.choice(kinds), names)]
        if len(lines) < statements + 6 and _runs("\n".join([*lines, *added])):
            lines += added
            names = [name for name in NAMES if any(f"{name} = " in line or f"{name}, " in line for line in lines)]
    return "\n".join(lines) + "\n"


def _filled(draw: random.Random, template: str, names: list[str]) -> str:
    values = {name: draw.choice(NAMES if name in "nm" else names) for name in "nmabc"}
    return template.format(**values, k=draw.choice((1, 2, 3)))


def _block(draw: random.Random, names: list[str]) -> list[str]:
    head = _filled(draw, draw.choice(HEADS), names)
    if head.startswith("def"):
        body = [draw.choice(IN_FUNCTION) for _ in range(draw.choice((1, 2)))]
        result = "z" if any(line.startswith("z") for line in body) else "x"
        call = _filled(draw, "{n} = f({a}, {b})", names)
        return [head, *(f"    {line}" for line in body), f"    return {result}", *[call] * draw.choice((1, 2))]
    choices = IN_PARAMETERS if "parameters" in head else SIMPLE
    inner = [_filled(draw, draw.choice(choices), names) for _ in range(draw.choice((1, 2, 3)))]
    if draw.random() < 0.2 and "parameters" not in head:
        inner = ["with torch.no_grad():", *(f"    {line}" for line in inner)]
    return [head, *(f"    {line}" for line in inner)]


def _runs(source: str) -> bool:
    with torch.random.fork_rng(), suppress(Exception):
        exec(compile(source, "program", "exec"), {"__name__": "__main__"})
        return True
    return False


# --- what happened --------------------------------------------------------------------------------


@dataclass(eq=False)
class Seen:
    """A tensor, as a snapshot found it."""

    tensor: torch.Tensor
    version: int
    requires_grad: bool
    is_leaf: bool
    retains_grad: bool
    grad_fn: Any
    base: torch.Tensor | None
    storage: int
    values: torch.Tensor
    grad: torch.Tensor | None
    grad_version: int
    grad_values: torch.Tensor | None


Snapshot = dict[str, Seen]


@dataclass
class Run:
    """One run of a statement, with the tensors by name before and after it."""

    line: int
    before: Snapshot
    after: Snapshot


@dataclass
class Truth:
    runs: dict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))  # by line
    end: Snapshot = field(default_factory=dict)


def truth(source: str) -> Truth:
    tree = ast.parse(source)
    _instrument(tree)
    recorded = Truth()
    open_runs: list[Snapshot] = []
    names: dict[str, Any] = {"__name__": "__main__"}

    def before(scope: dict[str, Any]) -> None:
        open_runs.append(snapshot({**names, **scope}))

    def after(line: int, scope: dict[str, Any]) -> None:
        recorded.runs[line].append(Run(line, open_runs.pop(), snapshot({**names, **scope})))

    names |= {"__before__": before, "__after__": after}
    with torch.random.fork_rng():
        exec(compile(ast.fix_missing_locations(tree), "program", "exec"), names)
    recorded.end = snapshot(names)
    return recorded


def _instrument(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for child in body for part in _wrapped(child)]  # type: ignore[attr-defined]


def _wrapped(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
        yield ast.parse("__before__(locals())").body[0]
        yield node
        yield ast.parse(f"__after__({node.lineno}, locals())").body[0]
    else:
        yield node


def snapshot(names: dict[str, Any]) -> Snapshot:
    seen: Snapshot = {}
    with torch.no_grad():
        for path, tensor in _tensors(names):
            with suppress(RuntimeError):  # a part of a tensor that was written since: nothing can be asked of it
                seen[path] = _seen(tensor)
    return seen


def _tensors(names: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}[{n}]", item) for n, item in enumerate(value) if isinstance(item, torch.Tensor))
        elif isinstance(value, torch.nn.Module):
            for path, tensor in value.state_dict(keep_vars=True).items():
                yield name + "".join(f"[{p}]" if p.isdigit() else f".{p}" for p in path.split(".")), tensor


def _seen(tensor: torch.Tensor) -> Seen:
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    return Seen(
        tensor,
        tensor._version,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.retains_grad,
        tensor.grad_fn,
        tensor._base,
        tensor.untyped_storage()._cdata,
        tensor.detach().clone(),
        grad,
        -1 if grad is None else grad._version,
        None if grad is None else grad.detach().clone(),
    )
