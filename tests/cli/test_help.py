"""Help that was followed: the program with the change made runs to its end, and nothing is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.diagnostics import diagnose
from tensorlens.records.edits import edited

Change = tuple[str, str]  # the text that the help is about, what it becomes

SCALED = """\
x = torch.ones(3, requires_grad=True)
y = torch.sigmoid(x)
y *= 2
y.sum().backward()
"""
MASKED = """\
scores = torch.zeros(4, requires_grad=True)
attention = torch.softmax(scores, dim=0)
attention[0] = 0.0
(attention * torch.arange(4.0)).sum().backward()
"""
SLICED = """\
x = torch.ones(4, requires_grad=True)
y = torch.sqrt(x * 4)
head = y[:2]
head.mul_(10)
y.sum().backward()
"""
CLEARED = """\
x = torch.ones(3, requires_grad=True)
w = torch.rand(3)
loss = (x * w).sum()
w.zero_()
loss.backward()
"""
RECURRENT = """\
w = torch.ones(3, requires_grad=True)
h = torch.zeros(4, 3)
for t in range(1, 4):
    h[t] = torch.tanh(h[t - 1] * w)
h[3].sum().backward()
"""
THROUGH_A_FUNCTION = RECURRENT.replace("for t", "def cell(h, w): return torch.tanh(h * w)\nfor t").replace(
    "torch.tanh(h[t - 1] * w)\nh[3]", "cell(h[t - 1], w)\nh[3]"
)
CLAMPED = """\
image = torch.rand(4, requires_grad=True)
loss = (image**2).sum()
with torch.no_grad(): image.clamp_(0, 1)
loss.backward()
"""
GAN = """\
made, judge = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
step_judge = torch.optim.SGD(judge.parameters(), lr=0.1)
fake = made(torch.ones(4, 2)).tanh()
loss = judge(fake).mean()
loss.backward()
step_judge.step()
made.zero_grad()
(-judge(fake).mean()).backward()
"""
HEADS = """\
trunk, left, right = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
opt = torch.optim.SGD(trunk.parameters(), lr=0.1)
h = trunk(torch.ones(5, 3)).tanh()
one, other = left(h).mean(), (right(h) ** 2).mean()
one.backward()
opt.step()
other.backward()
"""
BY_HAND = """\
w = torch.ones(3, requires_grad=True)
for step in range(2):
    loss = (w**2).sum()
    loss.backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad
"""

ROLLED = """\
cell = torch.nn.RNNCell(2, 3)
h = torch.zeros(1, 3)
for step in range(3):
    h = cell(torch.ones(1, 2), h)
    loss = h.square().sum()
    loss.backward()
"""
NEVER_CLEARED = """\
net = torch.nn.Linear(2, 1)
losses = []
for step in range(3):
    for _ in range(2): losses.append(net(torch.ones(4, 2)).exp().mean())
    torch.stack(losses).sum().backward()
"""
ALIASED = """\
a = torch.ones(3, requires_grad=True)
out = a.sigmoid()
c = out.detach()
c.zero_()
out.sum().backward()
"""
WINDOWS = """\
cell = torch.nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 3)
for step in range(3):
    h = cell(torch.ones(1, 2), h)
    loss = h.square().sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""

CASES = [
    (SCALED, "make a new tensor", None),
    (MASKED, "let softmax keep a copy of its result: no value changes", None),
    (MASKED, "or change a copy: `attention = attention.clone()` before this line", None),
    (SLICED, "let sqrt keep a copy of its result: no value changes", None),
    (CLEARED, "change a copy: `w = w.clone()` before this line", None),
    (ALIASED, "change a copy: make `c` with `.clone()`; `out` then stays as it was", None),
    (RECURRENT, "let `h[t - 1] * w` keep a copy of `h[t - 1]`: no value changes", None),
    (THROUGH_A_FUNCTION, "let `h * w` keep a copy of `h`: no value changes", None),
    (CLAMPED, "move `image.clamp_(0, 1)` below line 5: until then the forward pass needs `image` as it was",
     [("with torch.no_grad(): image.clamp_(0, 1)\n", ""),
      ("loss.backward()\n", "loss.backward()\nwith torch.no_grad(): image.clamp_(0, 1)\n")]),
    (GAN, "if `loss.backward()` is not to train what made `fake`, detach it for that pass", None),
    (HEADS, "run the forward pass of the later loss below `opt.step()`, with the new values",
     [("other.backward()\n", "(right(trunk(torch.ones(5, 3)).tanh()) ** 2).mean().backward()\n")]),
    (ROLLED, "`h` leads back to the graph of the pass before: detach it below this line",
     [("loss.backward()\n", "loss.backward()\n    h = h.detach()\n")]),
    (NEVER_CLEARED, "2 entries of `losses` are from an earlier pass: clear `losses` after this pass",
     [(".backward()\n", ".backward()\n    losses.clear()\n")]),
    (WINDOWS, ("put `h = h.detach()` below this line: `h` leads back to an earlier pass, which then gets no gradient "
               "from later ones"), None),
    (BY_HAND, "update `w` in place (`-=`, `copy_()`): it stays the leaf that it was",
     [("w = w - 0.1 * w.grad", "w -= 0.1 * w.grad\n        w.grad = None")]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "help_text", "changes"), CASES, ids=[case[1][:40] for case in CASES])
def test_followed_it_mends_the_program(
    program: str, help_text: str, changes: list[Change] | None, warm: Warm, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\n" + program, encoding="utf-8")
    ran, trace = warm.traced(script)
    assert ran.returncode == 1
    fixes = {fix.title: fix for diagnostic in diagnose(trace) for fix in diagnostic.fixes}
    assert help_text in fixes
    text = "import torch\n" + program
    if changes is None:  # the help is an edit
        assert fixes[help_text].edits
        text = edited(text, fixes[help_text].edits)
    for before, after in changes or ():
        assert before in text
        text = text.replace(before, after)
    script.write_text(text, encoding="utf-8")
    ran, trace = warm.traced(script)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [found for found in diagnose(trace) if found.severity in ("error", "warning")] == []
