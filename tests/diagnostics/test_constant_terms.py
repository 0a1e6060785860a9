"""Terms of a loss that no gradient goes back through: found where they were meant to train, else left alone."""

from __future__ import annotations

import textwrap

import pytest
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

from tensorlens.diagnostics import diagnose
from tensorlens.records.edits import edited

NET = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def program(text: str) -> str:
    return NET + textwrap.dedent(text).lstrip("\n") + "print([p.sum().item() for p in net.parameters()])\n"


NUMBER = """
def weight_norm(module):
    size = 0.0
    for p in module.parameters():
        size = size + p.square().sum().item()  # graph_cut_here
    return 0.1 * size

for _ in range(3):
    x = torch.randn(5, 3)
    loss = net(x).square().mean()
    total = loss + weight_norm(net)  # value_made_here
    optimizer.zero_grad()
    total.backward()  # needed_here
    optimizer.step()
"""
NUMBERS_THAT_MAY_BE_MEANT = {
    "a term with a backward pass of its own": """
        for _ in range(3):
            optimizer.zero_grad()
            size = sum(p.square().sum() for p in net.parameters())
            size.backward()
            loss = net(torch.randn(5, 3)).square().mean()
            total = loss + size.item()
            total.backward()
            optimizer.step()
        """,
    "a weight": """
        bias = 1.0
        for _ in range(3):
            out = net(torch.randn(5, 3))
            weighted = out.mean() * out.square().sum().item()
            loss = weighted + bias
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a number that is shown": """
        for _ in range(3):
            size = sum(p.square().sum() for p in net.parameters())
            loss = net(torch.randn(5, 3)).square().mean() + size
            shown = loss.item() + net[0].weight.norm().item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a number of the pass before, read after the step": """
        before = 0.0
        for _ in range(3):
            loss = net(torch.randn(5, 3)).square().mean() + before
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            before = net[0].weight.norm().item()
        """,
    "a number of the step before": """
        before = 0.0
        for _ in range(3):
            loss = net(torch.randn(5, 3)).square().mean() + before
            optimizer.zero_grad()
            loss.backward()
            before = net[0].weight.norm().item()
            optimizer.step()
        """,
}
WRONG = {  # program -> the piece of its text that is wrong, and what the help makes of it
    "added in place": (
        """
        for _ in range(2):
            x = torch.randn(5, 3).requires_grad_()
            out = net(x)
            slope = torch.autograd.grad(out.sum(), x, retain_graph=True)[0]  # graph_cut_here
            loss = out.square().mean()
            loss += 5 * slope.square().sum(1).mean()  # value_made_here
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
        ("retain_graph=True)", "retain_graph=True, create_graph=True)"),
    ),
    "an equation whose points require grad": (
        """
        for _ in range(2):
            x = torch.rand(5, 3, requires_grad=True)
            u = net(x)
            (slope,) = torch.autograd.grad(u, (x), torch.ones_like(u))  # graph_cut_here
            residual = slope[:, :1] - 2 * x[:, :1]
            losses = [residual.square().mean(), net(torch.zeros(2, 3)).square().mean()]
            loss = sum(losses)  # value_made_here
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
        ("torch.ones_like(u))", "torch.ones_like(u), create_graph=True)"),
    ),
    "the graph was not to be kept": (
        """
        from torch.autograd import grad

        def force(x):
            return -grad(net(x).sum(), [x], retain_graph=False, create_graph=False)[0]  # graph_cut_here

        for _ in range(2):
            x = torch.rand(5, 3, requires_grad=True)
            terms = {"energy": net(x).square().mean(), "force": (force(x) - 1).abs().mean()}
            loss = torch.stack(list(terms.values())).sum()  # value_made_here
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
        ("retain_graph=False, create_graph=False", "retain_graph=True, create_graph=True"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_gradient_without_graph_in_a_loss_is_found_and_cured(name: str, run: Run) -> None:  # noqa: F811
    text, (wrong, right) = WRONG[name]
    found = expect(run, "loss-term-is-constant", program(text))
    cured = edited(program(text), found.fixes[0].edits)
    assert cured.splitlines() == program(text).replace(wrong, right).splitlines()
    before, after = run(program(text))[0], expect_output(run, cured)
    assert before.stdout != after


def expect_output(run: Run, text: str) -> str:  # noqa: F811
    """Returns the output of a program that has no finding."""
    ran, trace = run(text)
    assert ran.returncode == 0, ran.stderr
    assert not diagnose(trace)
    return ran.stdout


NOTES = {
    "under no_grad": """
        x = torch.randn(5, 3)
        with torch.no_grad():
            decay = sum(p.square().sum() for p in net.parameters())
        loss = net(x).square().mean() + 0.1 * decay
        """,
    "behind a layer under no_grad": """
        world = nn.Linear(1, 1)
        state = torch.randn(5, 3)
        out = net(state)
        with torch.no_grad():
            value = world(out)
        loss = net(state).square().mean() - value.mean()
        """,
    "a distance beside a ratio of equal probabilities": """
        likely = net(torch.randn(5, 3)).log_softmax(0)
        with torch.no_grad():
            distance = likely.diff(dim=0).square().mean()
        ratio = torch.exp(likely - likely.detach())
        loss = distance - (ratio * torch.rand(5, 1)).mean()
        """,
    "counts": """
        x = torch.randn(5, 3)
        wrong = (net(x) > 0).float().mean()
        loss = net(x).square().mean() + wrong
        """,
}


@pytest.mark.parametrize("text", NOTES.values(), ids=NOTES)
def test_a_constant_that_may_be_meant_is_a_note(text: str, run: Run) -> None:  # noqa: F811
    step = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
    _, trace = run(NET + textwrap.dedent(text) + step)
    (found,) = diagnose(trace)
    assert (found.code, found.severity) == ("loss-term-is-constant", "note")


RIGHT = {
    "a gradient as a weight": """
        import torch
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            out = model(torch.randn(5, 3))
            first, second = out.square().mean(), out.abs().mean()
            one = torch.autograd.grad(first, model.weight, retain_graph=True)[0].norm()
            other = torch.autograd.grad(second, model.weight, retain_graph=True)[0].norm()
            optimizer.zero_grad()
            (first + one / other * second).backward()
            optimizer.step()
        """,
    "a step against a gradient that is one number": """
        import torch
        w = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            (slope,) = torch.autograd.grad((w - 2) ** 2, w)
            moved = w - 0.1 * slope
            (slope,) = torch.autograd.grad((moved - 2) ** 2, moved)
            loss = 3 * (moved - 0.1 * slope)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "the value of one term and the gradient of another": """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        out = model(torch.randn(5, 3))
        soft, hard = torch.sigmoid(out).mean(), (out > 0).float().mean()
        (hard - soft.detach() + soft).backward()
        optimizer.step()
        """,
    "the other network's score, for the log": """
        import torch
        critic, generator = torch.nn.Linear(3, 1), torch.nn.Linear(2, 3)
        for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
        for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
        for _ in range(2):
            real = torch.randn(5, 3)
            for_critic.zero_grad()
            (critic(generator(torch.randn(5, 2)).detach()).mean() - critic(real).mean()).backward()
            for_critic.step()
            for_generator.zero_grad()
            with torch.no_grad():
                score = critic(real).mean()
            (score - critic(generator(torch.randn(5, 2))).mean()).backward()
            for_generator.step()
        """,
    "a penalty with a graph": """
        import torch
        critic = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        x = torch.randn(5, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        (critic(x).mean() + slope.norm(dim=1).mean()).backward()
        optimizer.step()
        """,
    "a baseline that is added again to an estimate": """
        import torch
        model, critic = torch.nn.Linear(3, 4), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*model.parameters(), *critic.parameters()], lr=0.1)
        for _ in range(2):
            x = torch.randn(6, 5, 3)
            chosen = torch.distributions.Categorical(logits=model(x))
            action = chosen.sample()
            past = chosen.log_prob(action).cumsum(1)
            reward = torch.arange(4.0)[action]
            with torch.no_grad():
                value = critic(x).squeeze(-1)
            mean = (reward - value).mean(0)
            box = torch.exp(past - past.detach().clone())
            objective = (box * (reward - value - mean)).sum(1).mean() + mean.sum() + value.sum(1).mean()
            loss = (critic(x).squeeze(-1) - reward).square().mean() - objective
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a mean that is added to a ratio of equal probabilities": """
        import torch
        model = torch.nn.Linear(3, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            chosen = torch.distributions.Categorical(logits=model(torch.randn(6, 3)))
            action = chosen.sample()
            likely, reward = chosen.log_prob(action).exp(), torch.arange(4.0)[action]
            loss = -(likely / likely.detach() * (reward - reward.mean())).mean() - reward.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "points that are moved along a gradient": """
        import torch
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            x = torch.randn(5, 3, requires_grad=True)
            loss = model(x).square().mean()
            (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
            optimizer.zero_grad()
            (loss + model(x + 0.1 * slope.sign()).square().mean()).backward()
            optimizer.step()
        """,
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_constants_that_are_right_are_left_alone(text: str, run: Run) -> None:  # noqa: F811
    assert not diagnose(expect_nothing(run, text))


def test_a_number_that_is_added_gives_no_gradient(run: Run) -> None:  # noqa: F811
    text = program(NUMBER)
    (found,) = diagnose(run(text)[1])
    assert found.code == "loss-term-is-constant"
    repaired = edited(text, found.fixes[0].edits)
    assert repaired == text.replace("p.square().sum().item()", "p.square().sum()")
    ran, trace = run(repaired)
    assert ran.returncode == 0
    assert not diagnose(trace)


@pytest.mark.parametrize("text", NUMBERS_THAT_MAY_BE_MEANT.values(), ids=NUMBERS_THAT_MAY_BE_MEANT)
def test_a_number_that_may_be_meant_is_left_alone(text: str, run: Run) -> None:  # noqa: F811
    assert "loss-term-is-constant" not in {found.code for found in diagnose(run(program(text))[1])}
