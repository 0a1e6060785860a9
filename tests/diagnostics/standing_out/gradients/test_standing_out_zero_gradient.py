"""Gradients of zeros: the operation behind them, or the line that sets them to zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, report_of, sentences

TWO = "a, b = nn.Linear(4, 4), nn.Linear(4, 1)\nopt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n"
LOOP = "for i in range(4):\n    opt.zero_grad()\n"
SET_TO_ZERO = (
    TWO + LOOP + "    h = a(torch.randn(8, 4))\n    (b(h) + 0.0 * h.sum()).square().mean().backward()\n"
    "    for p in a.parameters():\n        p.grad.zero_()  #!\n    opt.step()\n"
)
ROUNDED = TWO + LOOP + "    h = a(torch.randn(8, 4)).round()  #!\n    b(h).square().mean().backward()\n    opt.step()\n"
CLIPPED = ROUNDED.replace(
    "    opt.step()", "    nn.utils.clip_grad_norm_([*a.parameters(), *b.parameters()], 1.0)\n    opt.step()"
)
SOMETIMES = (
    TWO + LOOP + "    h = a(torch.randn(8, 4))\n    h = h.round() if i % 2 else h.detach()  #!\n"
    "    b(h).square().mean().backward()\n    opt.step()\n"
)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (SET_TO_ZERO, "is exactly zero at each of 4 steps: `p.grad.zero_()` changes it before the step"),
        (ROUNDED, "is exactly zero at each of 4 steps: `round()` passes only zeros on"),
        (
            SET_TO_ZERO.replace(
                "    opt.step()",
                "    nn.utils.clip_grad_norm_([*a.parameters(), *b.parameters()], 1.0)\n    opt.step()",
            ),
            "is exactly zero at each of 4 steps: `p.grad.zero_()` changes it before the step",
        ),
        (CLIPPED, "is exactly zero at each of 4 steps: `round()` passes only zeros on"),
        (SOMETIMES, "is exactly zero at each of 2 steps with a gradient: `round()` passes only zeros on"),
    ],
)
def test_what_makes_the_zeros_is_named(tmp_path: Path, program: str, text: str) -> None:
    (found,) = sentences(tmp_path, program)
    assert found.text == f"each gradient of `a.weight` and `a.bias` {text}"
    assert found.labels[0].span.line == marked(program)


DRAWN = (
    TWO + "wide = nn.Parameter(torch.zeros(1))\nopt.add_param_group({'params': [wide]})\n" + LOOP
    + "    d = torch.distributions.Normal(b(a(torch.randn(8, 4))), wide.exp())\n    x = d.rsample()\n"
    "    (d.log_prob(x) * torch.randn(8, 1)).mean().backward()  #!\n    opt.step()\n"
)  # fmt: skip


def test_a_location_that_a_log_probability_takes_off_is_named(tmp_path: Path) -> None:
    (found,) = sentences(tmp_path, DRAWN)
    assert found.text.endswith(": `d.log_prob(x)` subtracts what `d.rsample()` has added, with its graph")
    assert found.labels[0].span.line == marked(DRAWN)


def test_a_sample_without_its_graph_is_left_alone(tmp_path: Path) -> None:
    assert sentences(tmp_path, DRAWN.replace("rsample", "sample")) == ()


HOOKED = (
    "loc = nn.Parameter(torch.zeros(3))\nwide = nn.Parameter(torch.zeros(3))\n"
    "loc.register_hook(torch.zeros_like)\nopt = torch.optim.SGD([loc, wide], lr=0.1)\n"
    + LOOP + "    d = torch.distributions.Normal(loc, wide.exp())\n    x = d.rsample()\n"
    "    (d.log_prob(x) * torch.randn(3)).mean().backward()\n    opt.step()\n"
)  # fmt: skip


ATTENTION = """\
context = 1
q, k, v, out = (nn.Linear(4, 4) for _ in range(4))
opt = torch.optim.SGD([p for layer in (q, k, v, out) for p in layer.parameters()], lr=0.1)
for i in range(4):
    x = torch.randn(8, context, 4)
    opt.zero_grad()
    h = (q(x) @ k(x).transpose(1, 2) / 2).softmax(-1) @ v(x) + x
    out(h[:, -1]).square().mean().backward()
    opt.step()
"""
CHOSEN = {
    "a hook that freezes": HOOKED,
    "heads that are kept for all ranks": TWO + LOOP + "    loss = b(torch.randn(8, 4)).square().mean()\n"
    "    loss = loss + 0.0 * sum(p.sum() for p in a.parameters())\n    loss.backward()\n    opt.step()\n",
    "a weight that is 0 yet": "prior = nn.Parameter(torch.zeros(4))\n" + TWO
    + "opt.add_param_group({'params': [prior]})\n" + LOOP + "    beta = max(0.0, (i - 10) / 10)\n"
    "    z = a(torch.randn(8, 4))\n"
    "    (b(z).square().mean() + beta * (z - prior).square().mean()).backward()\n    opt.step()\n",
    "the first step of an adapter": "up, down = nn.Parameter(torch.zeros(4, 2)), nn.Parameter(torch.randn(2, 4))\n"
    "base = nn.Linear(4, 4)\nopt = torch.optim.SGD([up, down], lr=0.1)\nx = torch.randn(8, 4)\n"
    "(base(x) + x @ down.T @ up.T).square().mean().backward()\nopt.step()\n",
    "a mixture of one component": "def train(count):\n    body, share, place = nn.Linear(4, 8), nn.Linear(8, count), "
    "nn.Linear(8, count)\n    every = [*body.parameters(), *share.parameters(), *place.parameters()]\n"
    "    opt = torch.optim.SGD(every, lr=0.1)\n    for i in range(3):\n        x = torch.randn(8, 4)\n"
    "        h = body(x).tanh()\n        near = -(place(h) - x[:, :1]).square()\n        opt.zero_grad()\n"
    "        (-(share(h).log_softmax(1) + near).logsumexp(1).mean()).backward()\n        opt.step()\ntrain(1)\n",
    "attention to a context of one": ATTENTION,
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_zeros_that_a_setting_makes_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, CHOSEN[name]) if "exactly zero" in each.text] == []


CHAIN = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
nn.init.zeros_(net[2].weight)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def chain(count):
    net.requires_grad_(False)
    x = torch.randn(8, 4).requires_grad_()
    for _ in range(5):
        x.grad = None
        net(x).sum().backward()
        x.data.add_(torch.randn(8, 4) - x.grad, alpha=0.1)
    net.requires_grad_(True)
    return x.detach()
for i in range(4):
    loss = (net(torch.randn(8, 4)) - net(chain(i))).mean() + net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STARTED = {
    "a chain before the first step": CHAIN,
    "a chain with trained weights": CHAIN.replace("net.requires_grad_(False)", "pass").replace(
        "net(x).sum().backward()", "net(x).sum().backward(inputs=[x])"),
    "a product": CHAIN.replace("net(x).sum()", "(net[1](net[0](x)) @ net[2].weight.T).sum()"),
    "a rate that starts at 0": CHAIN.replace("    opt.step()", (
        "    opt.param_groups[0]['lr'] = 0.1 * min(i, 1)\n    opt.step()")),
    "several chains before the first step": CHAIN.replace("for i in", "chain(0), chain(0)\nfor i in"),
}  # fmt: skip
UNTRAINED = {
    "a weight that stays 0": CHAIN.replace("net.parameters(), lr", "net[0].parameters(), lr"),
    "a rounded value": CHAIN.replace("net(x).sum()", "net(x.round()).sum()"),
    "many steps of the weight": CHAIN.replace(
        "    loss.backward()\n", ("    loss.backward()\n    net[2].weight.grad.mul_(float(i > 2))\n")
    ),
}


@pytest.mark.parametrize("name", STARTED)
def test_a_chain_of_samples_through_a_weight_that_starts_at_0_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, STARTED[name]) if "gradient of `x`" in each.text] == []


@pytest.mark.parametrize("name", UNTRAINED)
def test_a_chain_of_samples_that_gets_only_zeros_is_named(tmp_path: Path, name: str) -> None:
    assert any("of `x`" in each.text for each in sentences(tmp_path, UNTRAINED[name]) if "exactly zero" in each.text)


IN_FUNCTIONS = """\
def fit(rnn, last):
    head = nn.Linear(4, 1)
    opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
    for step in range(4):
        opt.zero_grad()
        out, _ = rnn(torch.randn(8, 5, 3))
        head(out[:, last]).square().mean().backward()
        opt.step()

def one():
    rnn = nn.GRU(3, 4, batch_first=True)
    fit(rnn, -1)

def both():
    rnn = nn.GRU(3, 2, batch_first=True, bidirectional=True)
    fit(rnn, -1)

one()
both()
"""


def test_one_parameter_is_not_called_by_the_call_of_its_module(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, IN_FUNCTIONS) if "exactly zero" in each.text)
    assert found.text.startswith("the gradient of a parameter of `nn.GRU(...)` is exactly zero at each of 4 steps")


GROUPED = (
    "loc = nn.Parameter(torch.zeros(3))\noffset = nn.Parameter(torch.zeros(3))\nwide = nn.Parameter(torch.zeros(3))\n"
    "opt = torch.optim.SGD([loc, offset, wide], lr=0.1)\n"
    + LOOP + "    d = torch.distributions.Normal(loc, wide.exp())\n    x = d.rsample()\n"
    "    y = torch.randn(3) + offset\n"
    "    ((d.log_prob(x) * torch.randn(3)).mean() + (y - offset).square().sum()).backward()\n    opt.step()\n"
)  # fmt: skip


def test_each_reason_has_its_own_parameters(tmp_path: Path) -> None:
    own, other = sorted(each.text for each in sentences(tmp_path, GROUPED))
    assert own.startswith("the gradient of `loc` is exactly zero at each of 4 steps: `d.log_prob(x)` subtracts")
    assert other.startswith("the gradient of `offset` is exactly zero at each of 4 steps: `y - offset` subtracts")


def test_no_operation_is_named_for_zeros_that_a_line_sets(tmp_path: Path) -> None:
    assert report_of(tmp_path, SET_TO_ZERO).trace.inspection.zeroed == ()
    assert report_of(tmp_path, ROUNDED).trace.inspection.zeroed != ()


@pytest.mark.parametrize(
    "statement",
    [
        "a.weight.grad.zero_()",
        "a.weight.grad.data.zero_()",
        "a.weight.grad.fill_(0)",
        "a.weight.grad[:] = 0",
        "a.weight.grad = torch.zeros_like(a.weight)",
        "both = nn.ModuleList((a, b))\n    both[0].weight.grad.zero_()",
        "opt.param_groups[0]['params'][0].grad.mul_(0)",
    ],
)
def test_a_gradient_that_a_line_clears_by_name_is_meant(tmp_path: Path, statement: str) -> None:
    body = SET_TO_ZERO.replace("for p in a.parameters():\n        p.grad.zero_()", statement)
    assert [each.text for each in sentences(tmp_path, body) if "exactly zero" in each.text] == []


PAIRS = (
    "net = nn.Linear(4, 1)\nopt = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.01)\n"
    + LOOP
    + "    x, y = torch.randn(8, 4) + 1, torch.randn(8, 4)\n    {}\n"
    + "    nn.functional.softplus(b - a).mean().backward()\n    opt.step()\n"
)


@pytest.mark.parametrize(
    "scores", ["a, b = net(x), net(y)", "a, b = net(torch.cat([x, y])).chunk(2)", "a, b = net(torch.stack([x, y]))"]
)
def test_a_bias_that_cancels_in_a_difference_is_left_alone(tmp_path: Path, scores: str) -> None:
    assert sentences(tmp_path, PAIRS.format(scores)) == ()


def test_a_bias_of_a_layer_without_gradients_is_named(tmp_path: Path) -> None:
    assert "`net.bias`" in sentences(tmp_path, PAIRS.format("a, b = net(x).round(), net(y).round()"))[0].text


def test_a_bias_whose_gradient_a_line_clears_is_named(tmp_path: Path) -> None:
    cleared = PAIRS.format("a, b = net(x), net(y)").replace(
        "    opt.step()", "    for p in [net.bias]:\n        p.grad.zero_()\n    opt.step()"
    )
    assert "`p.grad.zero_()` changes it" in sentences(tmp_path, cleared)[0].text
