"""Findings name only lines that the records establish: programs in which a likely line is the wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.first_help import Programs, lines_of
from support.warm import Warm

HEAD = "import torch\n"

SCALE = """class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x * k
    @staticmethod
    def backward(ctx, g):
        return g * 2
"""
MASKED_RESULT = """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
    def forward(self, x):
        mask = torch.ones(3)
        return mask * self.lin(x)
net = Net()
net.register_full_backward_hook(lambda m, i, o: None)
net(torch.rand(2, 3)).sum().backward()
"""
RESULT_BEFORE_LAST = """from torch.utils.checkpoint import checkpoint
lin = torch.nn.Linear(3, 3)
def block(x):
    y = lin(x)
    z = y.detach()  # cut
    print(float(y.mean().detach()))
    return z
x = torch.ones(2, 3, requires_grad=True)
out = checkpoint(block, x, use_reentrant=True)
(out.sum() + x.sum()).backward()
"""
BESIDE_A_CHECKPOINT = f"""from torch.utils.checkpoint import checkpoint
{SCALE}lin = torch.nn.Linear(3, 3)
y = Scale.apply(torch.ones(2, 3, requires_grad=True), 2.0)  # called
checkpoint(lambda t: lin(t).tanh(), y, use_reentrant=False).sum().backward()
"""
NESTED_MARK = """class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)  # declared
        Inner.apply(torch.ones(2, requires_grad=True) * 1)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)
    @staticmethod
    def backward(ctx, g):
        return g * 3
w = torch.ones(2, requires_grad=True)
Outer.apply(w)
"""
NO_VIEW = """x = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
y = torch.nn.Conv2d(3, 5, 3).to(memory_format=torch.channels_last)(x)
y.view(2, -1)
"""
POWER = """x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.tensor([0.5, 2.0], requires_grad=True)
base = x * 1  # made
exponent = y * 1
(base ** exponent).sum().backward()
"""
HOOK_BEFORE = """class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return NAN
NAN = torch.tensor([float("nan"), 1.0])
w = torch.ones(2, requires_grad=True)
k = Bad.apply(w) * 3
k.register_hook(lambda g: g * 2)
with torch.autograd.detect_anomaly():
    k.sum().backward()
"""
READER = """a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
def enlarge(g):
    g.mul_(10)
def look(g):
    g.norm()
a.register_hook(enlarge)
b.register_hook(look)
(a + b).backward(torch.ones(2))
"""
TWO_CHECKPOINTS = """from torch.utils.checkpoint import checkpoint
table = torch.nn.Embedding(4, 3).requires_grad_(False)
act, lin = torch.nn.ReLU(), torch.nn.Linear(3, 3)
def block(h):
    return h.tanh() + lin(h)  # inside
h = table(torch.arange(4))
h = checkpoint(act, h, use_reentrant=True)
h = checkpoint(block, h, use_reentrant=True)  # called
h.sum().backward()
"""


def lines(source: str, mark: str) -> set[int]:
    return {number for number, line in enumerate(source.splitlines(), 1) if line.endswith(f"# {mark}")}


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path, HEAD)


@pytest.mark.parametrize(
    ("source", "role", "mark"),
    [
        (RESULT_BEFORE_LAST, "graph_cut_here", "cut"),
        (BESIDE_A_CHECKPOINT, "called_here", "called"),
        (NESTED_MARK, "function_defined_here", "declared"),
        (POWER, "value_made_here", "made"),
        (TWO_CHECKPOINTS, "called_here", "called"),
        (MASKED_RESULT, "value_made_here", "no line"),
        (NO_VIEW, "view_made_here", "no line"),
    ],
    ids=["result", "checkpoint", "mark", "power", "checkpoints", "mask", "no-view"],
)
def test_a_label_is_at_the_line_that_did_it(source: str, role: str, mark: str, programs: Programs) -> None:
    assert set(lines_of(programs.first(source), role)) == lines(HEAD + source, mark)


def test_a_backward_that_called_nothing_has_no_last_call(programs: Programs) -> None:
    found = programs.first(HOOK_BEFORE)
    assert found.code == "anomaly-nan"
    assert not [label for label in found.labels if "custom `backward`" in label.text]


def test_a_hook_that_only_reads_the_changed_gradient_is_not_blamed(warm: Warm, tmp_path: Path) -> None:
    found = Programs(warm, tmp_path, HEAD, reference=True).findings(READER)
    titles = [each.title for each in found if each.code == "hook-mutates-shared-gradient"]
    assert ["`enlarge` of `a`" in title for title in titles] == [True]


def test_a_checkpoint_without_warning_of_its_own_is_found(programs: Programs) -> None:
    (found,) = programs.findings(TWO_CHECKPOINTS)
    assert found.severity == "error"
    assert set(lines_of(found, "value_made_here")) >= lines(HEAD + TWO_CHECKPOINTS, "inside")
