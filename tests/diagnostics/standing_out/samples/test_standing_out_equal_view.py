"""Checks what `--training` says about losses that compare two equal views of the samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "compares two results of a network for one input"
PAIRS = """\
data = torch.randn(64, 6)
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)

def jitter(x):
    return x + 0.1 * torch.randn_like(x)

def views(x):
    one = jitter(x)
    two = one  #!
    return one, two

def loss_of(one, two):
    one, two = (nn.functional.normalize(each, dim=1) for each in (one, two))
    return nn.functional.cross_entropy(one @ two.t() / 0.2, torch.arange(len(one)))

for rows in torch.randperm(64).split(16):
    one, two = views(data[rows])
    loss = loss_of(net(one), net(two))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOADED = """\
class Views(torch.utils.data.Dataset):
    def __init__(self):
        self.data = torch.randn(64, 3, 5, 5)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return [self.data[i] * torch.rand(3, 1, 1)] * 2  #!

body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 4))
top = nn.Linear(4, 4)
opt = torch.optim.SGD([*body.parameters(), *top.parameters()], lr=0.05)
for one, two in torch.utils.data.DataLoader(Views(), batch_size=16, shuffle=True):
    left, right = body(one), body(two)
    alike = nn.functional.cosine_similarity
    loss = -(alike(top(left), right.detach()).mean() + alike(top(right), left.detach()).mean()) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KERNEL = (
    PAIRS.replace("two = one  #!", "two = one")
    .replace("jitter(x)\n    two", "x\n    two")
    .replace(
        "return nn.functional.cross_entropy(one @ two.t() / 0.2, torch.arange(len(one)))",
        "return torch.logdet(one @ two.t() + torch.eye(len(one)))",
    )
)
SLOPE = """\
act = nn.LeakyReLU(0.0)
net = nn.Sequential(nn.Linear(6, 16), act, nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(60, 6), torch.randint(0, 3, (60,))
for rows in torch.arange(60).split(20):
    noisy = x[rows] + 0.1 * torch.randn(20, 6)
    copy = noisy.clone()
    act.negative_slope = 0.0
    hard = net(noisy)
    act.negative_slope = 0.5
    loss = nn.functional.cross_entropy(hard, y[rows]) + nn.functional.mse_loss(net(copy), hard)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ACTIVATIONS = """\
first, last = nn.Linear(6, 16), nn.Linear(16, 3)
opt = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
x, y = torch.randn(60, 6), torch.randint(0, 3, (60,))
def run(data, act):
    return last(act(first(data)))
for rows in torch.arange(60).split(20):
    noisy = x[rows] + 0.1 * torch.randn(20, 6)
    copy = noisy.clone()
    hard, soft = run(noisy, nn.LeakyReLU(0.0)), run(copy, nn.LeakyReLU(0.5))
    loss = nn.functional.cross_entropy(hard, y[rows]) + nn.functional.mse_loss(soft, hard)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
DILATED = """\
conv, head = nn.Conv1d(3, 8, 3, padding=1), nn.Linear(8, 3)
opt = torch.optim.SGD([*conv.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(60, 3, 16), torch.randint(0, 3, (60,))
def run(v, d):
    conv.dilation, conv.padding = (d,), (d,)
    return head(conv(v).relu().mean(2))
for rows in torch.arange(60).split(20):
    noisy = x[rows] + 0.1 * torch.randn(20, 3, 16)
    one, two = noisy, noisy
    near, far = run(one, 1), run(two, 2)
    loss = nn.functional.cross_entropy(near, y[rows]) + nn.functional.mse_loss(near, far)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "one name more": PAIRS,
    "a copy": PAIRS.replace("two = one  #!", "two = one.clone()  #!"),
    "of a loader": LOADED,
}  # fmt: skip
RIGHT = {
    "two draws": PAIRS.replace("two = one  #!", "two = jitter(x)"),
    "of a loader, two draws": LOADED.replace("[self.data[i] * torch.rand(3, 1, 1)] * 2", (
        "[self.data[i] * torch.rand(3, 1, 1) for _ in range(2)]")),
    "dropout in the network": PAIRS.replace("nn.ReLU()", "nn.Dropout(0.2)"),
    "a part that Python's random numbers choose": "import random\n" + PAIRS.replace("loss_of(net(one), net(two))", (
        "loss_of(*(net[2](net[1](net[0](x)) * random.random()) for x in (one, two)))")),
    "a copy in 16 bits": PAIRS.replace("two = one  #!", "two = one.to(torch.bfloat16).float()"),
    "a copy of whole numbers": PAIRS.replace("two = one  #!", "two = (one * 9).to(torch.int8).float()"),
    "two scales": PAIRS.replace("loss_of(net(one), net(two))", (
        "loss_of(net[2](net[0](one) * a), net[2](net[0](two) * b))")).replace("for rows", "a, b = 4.0, 1.0\nfor rows"),
    "one batch twice, dropout in the network": PAIRS.replace("nn.ReLU()", "nn.Dropout(0.2)").replace(
        "loss_of(net(one), net(two))", "loss_of(*net(torch.cat([one, two])).chunk(2))"),
    "a second network": PAIRS.replace("net(two))", "net[0](two)[:, :4])"),
    "the kernel of one batch": KERNEL,
    "a slope that is set between the two": SLOPE,
    "two activations": ACTIVATIONS,
    "one convolution with two dilations": DILATED,
    "the same input for two terms": PAIRS.replace("loss_of(net(one), net(two))", (
        "net(one).square().mean() + (net(two) - 1).abs().mean()")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_view_that_is_compared_with_itself_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_different_views_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
