"""Checks the sentence about products of parameters with a mask that new initial values overwrite."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MASKED = """\
class Masked(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
        with torch.no_grad():
            {}
        self.weight.register_hook(lambda grad: grad * self.mask)

    def forward(self, x):
        return nn.functional.linear(x, {}, self.bias)

net = nn.Sequential(Masked(4), nn.ReLU(), Masked(4))
def start(layer):
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)  #!
{}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a product": MASKED.format("self.weight.mul_(self.mask)", "self.weight", "net.apply(start)"),
    "through .data": MASKED.format("self.weight.data.mul_(self.mask)", "self.weight", "net.apply(start)"),
    "a mask of zeros": MASKED.format("self.weight.masked_fill_(self.mask == 0, 0.0)", "self.weight",
                                     "net.apply(start)"),
}  # fmt: skip
RIGHT = {
    "no other start": MASKED.format("self.weight.mul_(self.mask)", "self.weight", ""),
    "masked where it is used": MASKED.format("self.weight.mul_(self.mask)", "self.weight * self.mask",
                                             "net.apply(start)"),
    "masked by a copy": MASKED.format("self.weight.mul_(self.mask.clone())", "self.weight * self.mask",
                                      "net.apply(start)"),
    "in the constructor of a derived class": MASKED.replace("net = nn.Sequential(Masked(4), nn.ReLU(), Masked(4))",
        "class Dense(Masked):\n    def __init__(self, n):\n        super().__init__(n)\n"
        "        nn.init.normal_(self.weight)\n\nnet = nn.Sequential(Dense(4), nn.ReLU(), Dense(4))"
    ).format("self.weight.mul_(self.mask)", "self.weight", ""),
    "in a method that a derived class has, too": MASKED.replace("        with torch.no_grad():\n            {}\n", (
        "        self.begin()\n\n    def begin(self):\n        with torch.no_grad():\n            {}\n")).replace(
        "        self.weight.register_hook(lambda grad: grad * self.mask)\n", "").replace(
        "net = nn.Sequential(Masked(4), nn.ReLU(), Masked(4))",
        "class Dense(Masked):\n    def begin(self):\n        super().begin()\n        nn.init.normal_(self.weight)\n\n"
        "net = nn.Sequential(Dense(4), nn.ReLU(), Dense(4))"
    ).format("self.weight.mul_(self.mask)", "self.weight", ""),
    "of one layer": MASKED.format("self.weight.mul_(self.mask)", "self.weight", "start(net[2])"),
    "masked again": MASKED.format("self.weight.mul_(self.mask)", "self.weight",
                                  "net.apply(start)\nfor layer in net[::2]: layer.weight.data.mul_(layer.mask)"),
    "a gain": MASKED.format("self.weight.mul_(torch.tensor(0.5))", "self.weight", "net.apply(start)"),
}  # fmt: skip
SPARSE = """\
cell = nn.RNNCell(3, 8)
def thin(cell):
    with torch.no_grad():
        cell.weight_hh.mul_(torch.rand_like(cell.weight_hh) < 0.2)
        cell.weight_hh.mul_(0.9 / cell.weight_hh.norm(dim=1).mean())
def start(cell):
    nn.init.orthogonal_(cell.weight_hh)  #!
thin(cell)
start(cell)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    cell(torch.randn(5, 3), torch.ones(5, 8)).square().mean().backward()
    opt.step()
"""
WRONG["an orthogonal start"] = SPARSE
RIGHT |= {
    "thinned after an orthogonal start": SPARSE.replace("thin(cell)\nstart(cell)", "start(cell)\nthin(cell)"),
    "a norm that is printed": SPARSE.replace("thin(cell)\nstart", "thin(cell)\nprint(cell.weight_hh.norm())\nstart"),
    "a start from the values": SPARSE.replace(
        "nn.init.orthogonal_(cell.weight_hh)  #!",
        ("cell.weight_hh.data.copy_(torch.linalg.qr(cell.weight_hh.detach())[0])"),
    ),
}
WORDS = "overwrites all of the result"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_is_lost_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_products_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
