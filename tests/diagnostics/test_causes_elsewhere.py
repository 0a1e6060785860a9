"""The first help where the line to change is not the one that failed: another file, function, argument or run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.first_help import Programs, lines_of
from support.warm import Warm

from tensorlens.diagnostics.shared.wording import fix, in_order

HEAD = "import copy\nimport numpy as np\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path, HEAD, reference=True)


ROOM = """
class Room:
    def __init__(self):
        self.heat = np.ones(3, dtype=np.float32)

    def turn(self, by):
        self.heat *= by
        return self.heat

room, net = Room(), nn.Linear(3, 1)
seen = torch.from_numpy(room.heat)
total = 0
for step in range(3):
    total = total + net(seen).pow(2).sum()
    seen = torch.from_numpy(room.turn(2))
total.backward()
print(net.weight.grad)
"""


def test_every_line_that_makes_a_kept_tensor_of_the_array_gets_a_copy(programs: Programs) -> None:
    finding, after = programs.helped(ROOM)
    assert lines_of(finding, "shared_here") == [16, 20]
    right = ROOM.replace("room.heat)", "room.heat.copy())").replace("room.turn(2))", "room.turn(2).copy())")
    assert programs.printed(after) == programs.printed(right)


TWO_LAYERS = """
class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))

class Game:
    def __init__(self):
        self.score, self.move = Score(), nn.Linear(2, 3)
        self.opts = {"score": torch.optim.SGD(self.score.parameters(), 0.1),
                     "move": torch.optim.SGD(self.move.parameters(), 0.1)}

    def fit(self, x):
        return self.score(torch.ones(4, 3)).pow(2).mean()

    def play(self, x):
        return -self.score(self.move(x)).mean()

    def turn(self, name, loss):
        self.opts[name].zero_grad()
        loss.backward()
        self.opts[name].step()

    def round(self, x):
        losses = {"score": self.fit(x)}
        losses["move"] = self.play(x)
        for name, loss in losses.items():
            self.turn(name, loss)

game = Game()
game.round(torch.ones(4, 2))
print(game.move.weight.grad)
"""


def test_a_loss_that_another_function_computed_before_the_step_is_labelled(programs: Programs) -> None:
    finding, after = programs.helped(TWO_LAYERS)
    assert lines_of(finding, "called_here") == [34]
    assert after.count("functional_call(self.") == 2
    early = TWO_LAYERS.replace('{"score": self.fit(x)}', "{}").replace("self.play(x)\n", "self.play(x)\n", 1)
    assert programs.printed(after) == programs.printed(early)


KEPT = """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.last = nn.Linear(2, 2), None

    def forward(self, x):
        gate = torch.sigmoid(self.fc(x))
        self.last = gate
        return gate * x

net = Gate()
loss = net(torch.ones(3, 2)).sum()
if net.last is not None:
    {}
loss.backward()
print(copy.deepcopy(net).fc.weight.grad)
"""


def test_what_a_module_keeps_is_detached_unless_a_loss_is_computed_from_it(programs: Programs) -> None:
    finding, after = programs.helped(KEPT.format("print(net.last.mean().item())"))
    assert lines_of(finding, "nonleaf_made_here") == [14]
    assert "self.last = gate.detach()" in after
    assert programs.printed(after)
    finding, after = programs.helped(KEPT.format("loss = loss + net.last.pow(2).sum()"))
    assert (lines_of(finding, "nonleaf_made_here"), after) == ([14], "")


OPTIONS = """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.options = nn.Linear(2, 2), {}

    def save_memory(self, **options):
        self.options = options

    def forward(self, x):
        return checkpoint(self.fc, x, **self.options)

net = Net()
net.save_memory(use_reentrant=True)
net(torch.ones(1, 2)).sum().backward()
print(net.fc.weight.grad)
"""


def test_the_option_of_a_checkpoint_is_changed_where_it_is_set(programs: Programs) -> None:
    finding, after = programs.helped(OPTIONS)
    assert lines_of(finding, "flag_changed_here") == [21]
    assert programs.printed(after) == programs.printed(OPTIONS.replace("=True", "=False"))
    _, after = programs.helped(OPTIONS + "# another\ndef other(f, on):\n    return f(use_reentrant=on)\n")
    assert after == ""


CACHED = """
from torch.utils.checkpoint import checkpoint

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.scale, self.cached = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 1)), None

    def forward(self, x):
        if self.cached is None:
            self.cached = self.weight * self.scale.exp()
        return torch.tanh(x @ self.cached)

net = Scaled()
checkpoint(net, torch.ones(1, 2), use_reentrant=False).sum().backward()
print(net.weight.grad, net.scale.grad)
"""


def test_a_cache_that_only_the_first_run_fills_is_computed_again(programs: Programs) -> None:
    finding, after = programs.helped(CACHED)
    assert lines_of(finding, "state_changed_here") == [16]
    assert "if self.cached is None or torch.is_grad_enabled():" in after
    assert programs.printed(after) == programs.printed(CACHED.replace("if self.cached is None:", "if True:"))
    _, after = programs.helped(CACHED.replace("self.scale.exp()", "self.scale.exp() * torch.rand(1)"))
    assert after == ""  # the second run would draw another number


SUMMED = """
class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shift):
        return x - FORWARD

    @staticmethod
    def backward(ctx, gradient):
        back = -gradient.sum()
        return gradient, back

x, shift = torch.ones(2, 5, 3, requires_grad=True), torch.ones(3, requires_grad=True)
Shift.apply(x, shift).pow(3).sum().backward()
print(shift.grad)
"""


def test_a_gradient_is_summed_over_the_dimensions_that_forward_added(programs: Programs) -> None:
    program = SUMMED.replace("FORWARD", "shift")
    finding, after = programs.helped(program)
    assert lines_of(finding, "value_made_here") == [14]
    assert "-gradient.sum((0, 1))" in after
    assert programs.printed(after) == programs.printed(program.replace("-gradient.sum()", "-gradient.sum(0).sum(0)"))


def test_a_gradient_of_a_sum_is_not_summed_over_fewer_dimensions(programs: Programs) -> None:
    assert programs.helped(SUMMED.replace("FORWARD", "shift.sum()"))[1] == ""


def test_only_later_helps_begin_with_or_and_only_once() -> None:
    fixes = in_order([fix("or move it"), fix("or or copy it"), fix("drop it")])
    assert [each.title for each in fixes] == ["move it", "or copy it", "drop it"]
