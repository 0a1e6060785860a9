"""Checks the sentence about a custom backward that is differentiated again and takes a tensor for a constant."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import HEAD, marked
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.runner.second_run import complete

FUNCTION = """\
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = x.sigmoid()
        ctx.save_for_backward(x, gate)  #!
        return x * gate
    @staticmethod
    def backward(ctx, g):
        x, gate = ctx.saved_tensors
        return g * (gate + x * gate * (1 - gate))
"""
PENALTY = """\
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for step in range(4):
    x = torch.randn(6, 3, requires_grad=True)
    score = head(Own.apply(net(x)))
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = (score - 1).square().mean() + (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ATTRIBUTE = (
    FUNCTION.replace("ctx.save_for_backward(x, gate)  #!", "ctx.save_for_backward(x)\n        ctx.gate = gate  #!")
    .replace("x, gate = ctx.saved_tensors", "(x,) = ctx.saved_tensors")
    .replace("(gate + x * gate * (1 - gate))", "(ctx.gate + x * ctx.gate * (1 - ctx.gate))")
)
SLOPE_ALONE = """\
class Own(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.tanh(x), 1 - torch.tanh(x) ** 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])  #!
    @staticmethod
    def backward(ctx, g, _):
        (slope,) = ctx.saved_tensors
        return g * slope
"""
TWO = """\
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        inner = (a * x).sin()
        ctx.save_for_backward(x, a, inner)  #!
        return inner * inner
    @staticmethod
    def backward(ctx, g):
        x, a, inner = ctx.saved_tensors
        part = g * 2 * inner * (a * x).cos()
        return part * a, (part * x).sum(0)
"""
COORDINATES = """\
net, head = nn.Sequential(nn.Linear(1, 8), nn.Tanh()), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
for step in range(4):
    x = torch.rand(16, 1, requires_grad=True)
    u = head(Own.apply(net(x)))
    (first,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    loss = (second + u).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CURVATURE = """\
net, head = nn.Linear(3, 4), nn.Linear(4, 1)
weights = [*net.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(weights, lr=0.1)
for step in range(4):
    loss = (head(Own.apply(net(torch.randn(6, 3)))) - 1).square().mean()
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    products = torch.autograd.grad(sum(each.sum() for each in slopes), weights)
    for weight, slope, product in zip(weights, slopes, products):
        weight.grad = slope.detach() + 0.1 * product
    optimizer.step()
"""
WRONG = {
    "a gradient penalty": FUNCTION + PENALTY,
    "an attribute": ATTRIBUTE + PENALTY,
    "the slope alone, of a second output": SLOPE_ALONE + PENALTY.replace("Own.apply(net(x))", "Own.apply(net(x))[0]"),
    "two inputs": TWO
    + PENALTY.replace("Own.apply(net(x))", "Own.apply(net(x), a)").replace(
        "optimizer =", "a = nn.Parameter(torch.rand(4) + 1)\noptimizer =", 1
    ),
    "a derivative by a coordinate": FUNCTION + COORDINATES,
    "products with the Hessian": FUNCTION + CURVATURE,
}


def own(saved: str, forward: str, backward: str, before: str = "") -> str:
    return f"""\
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = {forward}
        ctx.save_for_backward({saved})
        return y
    @staticmethod
    {before}
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        return {backward}
"""


SURROGATE = """\
class Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x):
        gate = x.sigmoid()
        ctx.save_for_backward(g, x)
        return g * (gate + x * gate * (1 - gate))
    @staticmethod
    def backward(ctx, h):
        g, x = ctx.saved_tensors
        gate = x.sigmoid()
        return h * (gate + x * gate * (1 - gate)), h * g * gate * (1 - gate) * (2 + x * (1 - 2 * gate))
"""
JOINT = """\
class Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, x, gate):
        ctx.save_for_backward(g, x, gate)
        return g * (gate + x * gate * (1 - gate))
    @staticmethod
    def backward(ctx, h):
        g, x, gate = ctx.saved_tensors
        return h * (gate + x * gate * (1 - gate)), h * g * gate * (1 - gate) * (2 + x * (1 - 2 * gate)), None
"""
RIGHT = {
    "inputs alone": own("x", "x * x.sigmoid()", "g * s.sigmoid() * (1 + s * (1 - s.sigmoid()))") + PENALTY,
    "an output": own("y", "x.exp()", "g * s") + PENALTY,
    "an output, and its square": own("y", "x.tanh()", "g * (1 - s * s)") + COORDINATES,
    "a mask": own("(x > 0)", "x.clamp(min=0)", "g * s") + PENALTY,
    "a mask of numbers": own("torch.where(x > 0, 1.0, 0.2)", "torch.where(x > 0, x, 0.2 * x)", "g * s") + PENALTY,
    "straight through": own("x.sigmoid()", "x.round()", "g * s") + PENALTY,
    "a surrogate of a step": own("1 / (1 + x.abs()) ** 2", "(x > 0).float()", "g * s") + PENALTY,
    "gradient reversal": own("x.abs()", "x.view_as(x)", "-g * s / (s + 1e-3)") + PENALTY,
    "another first derivative": own("x.sigmoid()", "x * x", "g * s") + PENALTY,
    "random numbers": own("(x * 0 + torch.rand_like(x))", "x * torch.rand_like(x)", "g * s") + PENALTY,
    "a cut on purpose": own("x", "x * x", "g * 2 * s.detach()") + PENALTY,
    "another Function in backward": SURROGATE + own("x", "x * x.sigmoid()", "Slope.apply(g, s)") + PENALTY,
    "another Function in backward that gets both": JOINT
    + FUNCTION.replace("g * (gate + x * gate * (1 - gate))", "Slope.apply(g, x, gate)")
    + PENALTY,
    "first derivatives": FUNCTION
    + PENALTY.replace("create_graph", "retain_graph").replace("(slope.norm", "0 * (slope.norm"),
    "a gradient that nothing differentiates": FUNCTION
    + PENALTY.replace(" + (slope.norm(dim=1) - 1).square().mean()", "\n    print(slope.norm())"),
    "a gradient that only the head depends on": FUNCTION
    + PENALTY.replace("head(Own.apply(net(x)))", "head(Own.apply(torch.cat([x, x[:, :1]], 1)))"),
    "a pass that another part alone is trained by": FUNCTION
    + PENALTY.replace("loss.backward()", "loss.backward(inputs=list(head.parameters()))"),
    "weights that are meant as constants": FUNCTION.replace(
        "Function):\n", 'Function):\n    """The Gauss-Newton matrix takes the gate for fixed."""\n', 1
    )
    + CURVATURE,
    "weights that are meant, by a comment": FUNCTION.replace("ctx, g):", "ctx, g):  # as in IRLS") + CURVATURE,
    "linear": own("x.new_full((), 3.0)", "3 * x", "g * s") + PENALTY,
}
WORDS = "without a graph, so that autograd takes "


def found_in(warm: Warm, folder: Path, body: str) -> list[tuple[str, int]]:
    """Returns the sentences, with their lines, that a program gets after its second run."""
    script = folder / "program.py"
    script.write_text(HEAD + body)
    runs = WarmRuns(warm, script, training=True)
    first = runs.first()
    assert first.exited.returncode == 0, first.printed
    complete(runs, first, None)
    trace = first.trace()
    assert validate(trace) == []
    report = report_on(trace)
    assert runs.count == 2
    assert body.count("class ") == 1 or not report.diagnostics
    return [(each.text, each.labels[0].span.line) for each in report.standing_out or () if WORDS in each.text]


@pytest.mark.parametrize("name", WRONG)
def test_a_constant_in_a_second_derivative_is_named(warm: Warm, tmp_path: Path, name: str) -> None:
    ((_, line),) = found_in(warm, tmp_path, WRONG[name])
    assert line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_right_second_derivatives_are_left_alone(warm: Warm, tmp_path: Path, name: str) -> None:
    assert found_in(warm, tmp_path, RIGHT[name]) == []


def test_the_values_are_those_of_backward(warm: Warm, tmp_path: Path) -> None:
    """The derivative of a cube's gradient is 6 x, of which a saved square leaves 0."""
    cube = own("3 * x * x", "x ** 3", "g * s")
    ((text, _),) = found_in(warm, tmp_path, cube + PENALTY)
    assert "uses `3 * x * x`" in text
    assert "it gives [0, 0, 0] as the derivative by `x`, and central differences give [" in text


def test_only_what_backward_reads_is_named(warm: Warm, tmp_path: Path) -> None:
    """Each line is labelled with its own name."""
    kept = FUNCTION.replace(
        "x, gate)  #!", "x, gate, x.exp())\n        ctx.peak = x.abs().amax()\n        ctx.twice = 2 * gate"
    )
    kept = kept.replace("x, gate = ctx", "x, gate, unused = ctx").replace("g * (gate +", "g * (ctx.twice / 2 +")
    ((text, _),) = found_in(warm, tmp_path, kept + PENALTY)
    assert "uses `gate` and `ctx.twice`, which" in text
    assert text.endswith("]")
