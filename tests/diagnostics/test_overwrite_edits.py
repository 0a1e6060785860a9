"""The first help for an overwritten tensor, applied: the gradients are those of a version repaired by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.first_help import Programs
from support.warm import Warm

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\ntorch.manual_seed(0)\n"

REUSED_BUFFER = """
    net = nn.Linear(2, 3)
    kept = torch.zeros(4, 3)
    total = 0
    for t in range(4):
        kept[t] = net(torch.ones(2)).detach() * t
        total = total + (net(torch.ones(2)) * kept[t]).sum()
    total.backward()
    print(net.weight.grad)
"""
ALIAS_IN_FORWARD = """
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 3))
            self.register_buffer("u", torch.ones(2))

        def forward(self, x):
            u = self.u
            scale = torch.dot(u, self.weight @ torch.ones(3))
            with torch.no_grad():
                u.copy_(u * 2)
            return (x @ self.weight.t() / scale).sum()

    norm = Norm()
    loss = norm(torch.ones(4, 3))
    loss.backward()
    print(norm.weight.grad, norm.u)
"""
DISCARDED = """
    def limited(t):
        t.clamp_(0.4, 0.6)
        return t

    net = nn.Linear(3, 3)
    y = net(torch.randn(2, 3)).sigmoid()
    limited(y)
    (y * y).sum().backward()
    print(net.weight.grad)
"""
LAYER_FOR_ITS_WRITE = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.act = nn.Linear(3, 3), nn.ReLU(inplace=True)

        def forward(self, x):
            h = torch.tanh(self.linear(x))
            self.act(h)
            return h.sum()

    net = Net()
    net(torch.randn(4, 3)).backward()
    print(net.linear.weight.grad)
"""
HOOK = """
    net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.Linear(3, 1))

    def centre(module, inputs, output):
        output.sub_(output.mean(0))

    net[1].register_forward_hook(centre)
    net(torch.randn(4, 3)).square().sum().backward()
    print(net[0].weight.grad)
"""
FAST_WEIGHTS = """
    def adapted(weights, x):
        for _ in range(2):
            loss = (x @ (weights[0] * weights[0])).square().sum()
            grads = torch.autograd.grad(loss, weights, create_graph=True)
            for weight, grad in zip(weights, grads):
                weight.sub_(0.1 * grad)
        return weights

    w = torch.ones(3, requires_grad=True)
    (torch.ones(2, 3) @ adapted([w.clone()], torch.ones(2, 3))[0]).sum().backward()
    print(w.grad)
"""
NO_HISTORY = """
    net = nn.Linear(3, 3)
    y = net(torch.randn(2, 3)).sigmoid()
    with torch.no_grad():
        y *= 2
    (y * torch.arange(3.0)).sum().backward()
    print(net.weight.grad)
"""
RESTORED = """
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    start = {k: v.clone() for k, v in net.state_dict().items()}
    def learn(tasks):
        total = 0
        for x in tasks:
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(0.1)
            total = total + net(x).square().sum()
            net.load_state_dict(start)
        total.backward()
    learn([torch.ones(3, 2), torch.zeros(3, 2)])
    print(net[0].weight.grad)
"""
TWO_LOSSES = """
    maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
    step_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
    for _ in range(2):
        fake = maker(torch.randn(3, 2))
        real, made = judge(torch.randn(3, 2)), judge(fake)
        judging = made.mean() - real.mean() + real.square().mean()
        making = -made.square().mean()
        step_judge.zero_grad()
        judging.backward(retain_graph=True)
        step_judge.step()
        step_maker.zero_grad()
        making.backward()
        print(maker.weight.grad)
        step_maker.step()
"""
FREED_TOO = """
    maker, judge = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 1)
    step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
    z = torch.ones(3, 2)
    fake = maker(z)
    judging = judge(fake).square().mean()
    making = -judge(fake).square().mean()
    judging.backward()
    step_judge.step()
    maker.zero_grad()
    making.backward()
    print(maker[0].weight.grad)
"""
SIDE_EFFECT = """
    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.seen = nn.Linear(2, 1), 0

        def forward(self, x):
            self.seen += 1
            return self.linear(x)

    maker, judge = nn.Linear(2, 2), Judge()
    step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
    made = judge(maker(torch.ones(3, 2)))
    judging, making = made.mean(), -made.square().mean()
    judging.backward(retain_graph=True)
    step_judge.step()
    maker.zero_grad()
    making.backward()
    print(maker.weight.grad, judge.seen)
"""
CARRIED = """
    cell = nn.LSTM(2, 3)
    step = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = None
    for t in range(3):
        out, state = cell(torch.ones(4, 1, 2), state)
        step.zero_grad()
        out.square().sum().backward(retain_graph=True)
        print(cell.weight_ih_l0.grad)
        step.step()
"""
TEACHER = """
    student, teacher = nn.Linear(2, 2), nn.Linear(2, 2)
    def follow():
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), student.parameters()):
                t.mul_(0.9).add_(s, alpha=0.1)
    def step(x):
        loss = (student(x) - teacher(x.tanh() * student(x)).sigmoid()).square().mean()
        follow()
        loss.backward()
    step(torch.ones(3, 2))
    print(student.weight.grad, teacher.weight)
"""
ARRAY = """
    net = nn.Linear(3, 3)
    h = torch.tanh(net(torch.ones(2, 3)))
    loss = h.square().sum()
    picture = h.detach().numpy()
    picture *= 10
    loss.backward()
    print(net.weight.grad)
"""
ARRAY_THAT_IS_READ = """
    memory = __import__("numpy").ones((2, 3), dtype="float32")
    x = torch.from_numpy(memory)
    net = nn.Linear(3, 1)
    for _ in range(2):
        loss = net(x).square().sum()
        memory += 1
        loss.backward()
    print(net.weight.grad)
"""

COPIED = "torch.func.functional_call({0}, {{k: p.clone() for k, p in {0}.named_parameters()}}, ({1},))"
CASES = [
    (REUSED_BUFFER, "* kept[t])", "* kept[t].clone())"),
    (ALIAS_IN_FORWARD, "torch.dot(u,", "torch.dot(u.clone(),"),
    (DISCARDED, ".sigmoid()", ".sigmoid().clone()"),
    (LAYER_FOR_ITS_WRITE, "self.linear(x))", "self.linear(x)).clone()"),
    (HOOK, "output.sub_(output.mean(0))", "return output - output.mean(0)"),
    (FAST_WEIGHTS, "for weight, grad in zip(weights, grads):\n                weight.sub_(0.1 * grad)",
     "weights = [weight - 0.1 * grad for weight, grad in zip(weights, grads)]"),
    (NO_HISTORY, ".sigmoid()", ".sigmoid().clone()"),
    (RESTORED, "net(x).square()", COPIED.format("net", "x") + ".square()"),
    (TWO_LOSSES, "step_maker.zero_grad()", "making = -judge(fake).square().mean(); step_maker.zero_grad()"),
    (FREED_TOO, "maker.zero_grad()", "maker.zero_grad(); making = -judge(maker(z)).square().mean()"),
    (SIDE_EFFECT, "made = judge(maker(torch.ones(3, 2)))",
     "made = " + COPIED.format("judge", "maker(torch.ones(3, 2))")),
    (CARRIED, "step.step()", "step.step(); state = (state[0].detach(), state[1].detach())"),
    (TEACHER, "follow()\n        loss.backward()", "loss.backward()\n        follow()"),
    (ARRAY, ".numpy()", ".numpy().copy()"),
    (ARRAY_THAT_IS_READ, "net(x)", "net(x.clone())"),
]  # fmt: skip


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path, HEAD)


@pytest.mark.parametrize(("program", "before", "after"), CASES, ids=[case[2][:30] for case in CASES])
def test_the_first_help_gives_the_gradients_of_the_repaired_program(
    program: str, before: str, after: str, programs: Programs
) -> None:
    right = program.replace(before if before in program else before.strip(), after)
    assert right != program
    finding, helped = programs.helped(program)
    assert helped, finding.fixes[0].title
    assert programs.printed(helped) == programs.printed(right), finding.fixes[0].title


def test_a_statement_that_nothing_needs_before_the_step_moves(programs: Programs) -> None:
    finding, after = programs.helped(
        """
        maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
        step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
        fake = maker(torch.ones(3, 2))
        judging = judge(fake.detach()).square().mean()
        making = -judge(
            fake
        ).square().mean()
        judging.backward()
        step_judge.step()
        making.backward()
        """
    )
    assert finding.fixes[0].title == "move line 10 below this line: `making` then uses the new values"
    assert after.count("making = -judge(") == 1
    assert after.index("step_judge.step()\nmaking = -judge(\n    fake\n).square().mean()\nmaking.backward()") > 0


def test_a_name_that_is_bound_again_in_between_is_not_computed_again(programs: Programs) -> None:
    finding = programs.first(
        """
        maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
        step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
        loss = judge(maker(torch.ones(3, 2))).square().mean()
        making = loss
        loss = judge(torch.ones(3, 2)).square().mean()
        loss.backward()
        step_judge.step()
        making.backward()
        print(loss)
        """
    )
    first = finding.fixes[0]
    assert first.title == "let `judge` compute with copies of its parameters: no value changes"
    assert first.place is not None
    assert first.place.line == 8
