"""Checks the sentences about gradients that another loss leaves, and about hooks of a tensor with several uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

GAN = """\
from torch.nn.functional import binary_cross_entropy_with_logits as bce
G, D = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
real, one, zero = torch.randn(8, 4), torch.ones(8, 1), torch.zeros(8, 1)
def fakes():
    return G(torch.randn(8, 2))
"""
BRANCHES = """\
body, left, right = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD([*body.parameters(), *left.parameters(), *right.parameters()], lr=0.01)
x = torch.randn(8, 4)
"""
STEP = "    opt.zero_grad(); (a.square().mean() + b.square().mean()).backward(); opt.step()\n"
LEFT = {
    "a generator's loss": GAN
    + """\
for _ in range(4):
    bce(D(fakes()), one).backward()  #!
    og.step(); og.zero_grad()
    (bce(D(real), one) + bce(D(fakes().detach()), zero)).backward()
    od.step(); od.zero_grad()
""",
    "two updates in functions": GAN
    + """\
def generator():
    og.zero_grad()
    bce(D(fakes()), one).backward()  #!
    og.step()
def discriminator():
    (bce(D(real), one) + bce(D(fakes().detach()), zero)).backward()
    od.step()
for _ in range(4):
    generator()
    discriminator()
    od.zero_grad()
""",
}
LEFT_BY_ONE_FUNCTION = (
    GAN
    + """\
def update(loss, opt):
    loss.backward()  #!
    opt.step()
    opt.zero_grad()
for _ in range(4):
    update(bce(D(fakes()), one), og)
    update(bce(D(real), one) + bce(D(fakes().detach()), zero), od)
"""
)
ACTOR = """\
from torch.nn.functional import mse_loss
A, Q = nn.Sequential(nn.Linear(3, 2), nn.Tanh()), nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
opts = {"actor": torch.optim.Adam(A.parameters()), "critic": torch.optim.Adam(Q.parameters())}
oa, oq = opts.values()
s, a, y = torch.randn(8, 3), torch.randn(8, 2), torch.randn(8, 1)
def value(state, action):
    return Q(torch.cat([state, action], 1))
"""
SCORED = {
    "an actor's loss between": ACTOR
    + """\
for step in range(6):
    oa.zero_grad(); oq.zero_grad()
    mse_loss(value(s, a), y).backward()
    if step % 2:
        chosen = A(s)
        q = value(s, chosen)
        (-2 * q.mean() / q.abs().mean().detach() + mse_loss(chosen, a)).backward()  #!
        oa.step()
    oq.step()
""",
    "an actor's loss before": ACTOR
    + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    (-torch.min(value(s, A(s)), value(-s, A(-s)))).mean().backward()  #!
    mse_loss(value(s, a), y).backward()
    oa.step(); oq.step()
""",
    "one line for both losses": ACTOR
    + """\
for _ in range(4):
    losses = {"critic": mse_loss(value(s, a), y), "actor": -value(s, A(s)).mean()}
    for each in opts.values():
        each.zero_grad()
    for name in losses:
        losses[name].backward()  #!
    for name in losses:
        opts[name].step()
""",
}
TASKS = """\
trunk, heads = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
x, opt = torch.randn(8, 4), torch.optim.SGD(trunk.parameters(), lr=0.05)
own = [torch.optim.SGD(head.parameters(), lr=0.05) for head in heads]
"""
MODEL = """\
encoder, cell, actor = nn.Linear(4, 3), nn.Linear(5, 3), nn.Linear(3, 2)
om = torch.optim.Adam([*encoder.parameters(), *cell.parameters()])
oa = torch.optim.Adam(actor.parameters())
x, a, y = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8, 3)
for _ in range(4):
    (cell(torch.cat([encoder(x), a], 1)) - y).square().mean().backward()
    om.step(); om.zero_grad()
    z = encoder(x).detach()
    (-cell(torch.cat([z, actor(z)], 1)).mean()).backward()  #!
    oa.step(); oa.zero_grad()
"""
HOOKS = {
    "a reversal": BRANCHES
    + """\
def reverse(h):
    h.register_hook(lambda g: -0.5 * g)  #!
    return h
for _ in range(3):
    h = body(x)
    a = left(h)
    b = right(reverse(h))
"""
    + STEP,
}
RIGHT = {
    "two tasks of a trunk that steps once for both": TASKS + """\
for _ in range(4):
    opt.zero_grad()
    for head, its, target in zip(heads, own, (x[:, :1], x[:, 1:2])):
        its.zero_grad()
        (head(trunk(x).relu()) - target).square().mean().backward()
        its.step()
    opt.step()
""",
    "two tasks, cleared after the step": TASKS + """\
for _ in range(4):
    (heads[0](trunk(x)) - x[:, :1]).square().mean().backward(); own[0].step(); own[0].zero_grad()
    (heads[1](trunk(x)) - x[:, 1:2]).square().mean().backward(); own[1].step(); own[1].zero_grad()
    opt.step(); opt.zero_grad()
""",
    "a bound that both raise": ACTOR + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    (-value(s, A(s)).mean()).backward()
    with torch.no_grad():
        other = A(s[torch.randperm(8)])
    (value(s, other) - 1).exp().mean().backward()
    oa.step(); oq.step()
""",
    "a sampler whose scores both lower": ACTOR + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    mse_loss(value(s, a), y).backward()
    Q(torch.cat([A(torch.randn(8, 3)), A(torch.randn(8, 3)), A(torch.randn(8, 3))[:, :1]], 1)).mean().backward()
    oa.step(); oq.step()
""",
    "cleared before": GAN + """\
for _ in range(4):
    og.zero_grad(); bce(D(fakes()), one).backward(); og.step()
    od.zero_grad(); (bce(D(real), one) + bce(D(fakes().detach()), zero)).backward(); od.step()
""",
    "the discriminator first": GAN + """\
for _ in range(4):
    od.zero_grad(); (bce(D(real), one) + bce(D(fakes().detach()), zero)).backward(); od.step()
    og.zero_grad(); bce(D(fakes()), one).backward(); og.step()
""",
    "frozen for the generator": GAN + """\
for _ in range(4):
    D.requires_grad_(False); bce(D(fakes()), one).backward(); og.step(); og.zero_grad(); D.requires_grad_(True)
    (bce(D(real), one) + bce(D(fakes().detach()), zero)).backward(); od.step(); od.zero_grad()
""",
    "two passes for one step of one optimizer, one for each of another": GAN + """\
for step in range(8):
    bce(D(fakes()), one).backward()
    og.step(); og.zero_grad()
    if step % 2:
        od.step(); od.zero_grad()
""",
    "one function, frozen for the generator": GAN + """\
def update(loss, opt):
    loss.backward()
    opt.step()
    opt.zero_grad()
for _ in range(4):
    D.requires_grad_(False)
    update(bce(D(fakes()), one), og)
    D.requires_grad_(True)
    update(bce(D(real), one) + bce(D(fakes().detach()), zero), od)
""",
    "two passes for one step": GAN + """\
for _ in range(4):
    bce(D(real), one).backward()
    bce(D(fakes().detach()), zero).backward()
    od.step(); od.zero_grad()
""",
    "two optimizers after two losses": BRANCHES + """\
first, second = torch.optim.SGD(left.parameters(), lr=0.1), torch.optim.SGD(body.parameters(), lr=0.1)
for _ in range(4):
    left(body(x)).mean().backward()
    right(body(x)).mean().backward()
    first.step(); second.step(); first.zero_grad(); second.zero_grad()
""",
    "the critic steps before the actor's loss": ACTOR + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    mse_loss(value(s, a), y).backward(); oq.step()
    (-value(s, A(s)).mean()).backward(); oa.step()
""",
    "only the actor's inputs": ACTOR + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    mse_loss(value(s, a), y).backward()
    (-value(s, A(s)).mean()).backward(inputs=list(A.parameters()))
    oa.step(); oq.step()
""",
    "a decoder that both losses fit": ACTOR + """\
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    mse_loss(value(s, a), y).backward()
    mse_loss(value(s, A(s)), y).backward()
    oa.step(); oq.step()
""",
    "a loss with learned parts": ACTOR + """\
def energy(state, action):
    return value(state, action).mean()
for _ in range(4):
    oa.zero_grad(); oq.zero_grad()
    energy(s, a).backward()
    energy(s, A(s)).backward()
    oa.step(); oq.step()
""",
    "a reversal of one branch": BRANCHES + """\
def reverse(h):
    h = h.view_as(h)
    h.register_hook(lambda g: -0.5 * g)
    return h
for _ in range(3):
    h = body(x)
    a = left(h)
    b = right(reverse(h))
""" + STEP,
    "clipped for all branches": BRANCHES + """\
for _ in range(3):
    h = body(x)
    h.register_hook(lambda g: g.clamp(-1, 1))
    a, b = left(h), right(h)
""" + STEP,
    "a state that a loop carries, halved": BRANCHES + """\
for _ in range(3):
    h, a = body(x), 0
    for _ in range(3):
        a = a + left(h)
        h.register_hook(lambda g: g * 0.5)
        h = body(h)
    b = right(h)
""" + STEP,
    "clipped after a use": BRANCHES + """\
for _ in range(3):
    h = body(x)
    a = left(h)
    h.register_hook(lambda g: g.clamp(-1, 1))
    b = right(h)
""" + STEP,
    "two losses of an encoder, the head steps between": BRANCHES + """\
ob, ol = torch.optim.Adam(body.parameters()), torch.optim.Adam(left.parameters())
for _ in range(4):
    ob.zero_grad(); ol.zero_grad()
    (left(body(x).relu()) - 1).square().mean().backward()
    ol.step()
    (body(x + 0.1) - body(x)).square().mean().backward()
    ob.step()
""",
    "a hook that only looks": BRANCHES + """\
for _ in range(3):
    h = body(x)
    a = left(h)
    h.register_hook(lambda g: print(g.norm().item()))
    b = right(h)
""" + STEP,
}  # fmt: skip
WORDS = (
    "is left from a pass",
    "gives another gradient to all uses",
    "and compares it with nothing",
    "as a constant, and",
)


def test_gradients_that_an_actor_leaves_in_a_model_with_an_encoder_are_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, MODEL) if WORDS[0] in each.text)
    assert found.labels[0].span.line == marked(MODEL)


def test_gradients_that_another_call_of_one_function_leaves_are_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, LEFT_BY_ONE_FUNCTION) if WORDS[0] in each.text)
    assert found.text.startswith("`Adam.step()` uses sums of gradients of `D[0].weight`")
    assert found.labels[0].span.line == marked(LEFT_BY_ONE_FUNCTION)


@pytest.mark.parametrize("name", LEFT)
def test_gradients_that_another_loss_leaves_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, LEFT[name]) if WORDS[0] in each.text)
    assert found.text == (
        "`Adam.step()` uses sums of gradients of `D[0].weight`, `D[0].bias`, `D[2].weight` and 1 more: a part is left "
        "from a pass after which `Adam.step()` has stepped other parameters"
    )
    assert found.labels[0].span.line == marked(LEFT[name])


@pytest.mark.parametrize("name", SCORED)
def test_gradients_of_a_loss_that_only_raises_results_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, SCORED[name]) if WORDS[2] in each.text)
    assert found.text == (
        "`Adam.step()` uses sums of gradients of `Q[0].weight`, `Q[0].bias`, `Q[2].weight` and 1 more: one pass does "
        "not reach `A[0].weight` and `A[0].bias`, and the loss of the other pass, which does, raises or lowers what "
        "they compute from a result of these, and compares it with nothing"
    )
    assert found.labels[0].span.line == marked(SCORED[name])


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_of_an_earlier_use_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, HOOKS[name]) if WORDS[1] in each.text)
    assert "to all uses of `h`, also to `left(h)`, which ran before the hook was registered" in found.text
    assert found.labels[0].span.line == marked(HOOKS[name])


@pytest.mark.parametrize("name", RIGHT)
def test_usual_gradients_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
