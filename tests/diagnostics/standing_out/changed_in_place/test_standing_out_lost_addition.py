"""Checks the sentence about `x[index] += y` where the index is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

GRAPH = """\
message, readout = nn.Linear(8, 4), nn.Linear(4, 1)
embed = nn.Embedding(6, 4)
opt = torch.optim.SGD([*message.parameters(), *readout.parameters(), *embed.parameters()], lr=0.1)
src, dst = torch.tensor([0, 1, 2, 3, 4, 5, 0, 2]), torch.tensor([1, 2, 3, 1, 2, 3, 5, 0])
y = torch.randn(6)
"""
STEP = """\
    loss = (readout(inbox).squeeze(1) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = (
    GRAPH
    + """\
for _ in range(3):
    h = embed.weight * 1.0
    msg = message(torch.cat([h[src], h[dst]], 1))
    inbox = torch.zeros(6, 4)
"""
)
PLAIN = LOOP + "    inbox[dst] += msg  #!\n" + STEP
COUNTED = LOOP + "    inbox.index_add_(0, dst, msg)\n    degree = torch.zeros(6)\n"
FUNCTION = """\
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 2)

    def forward(self, points, cells):
        grid = points.new_zeros(4, 4, 2)
        grid[cells[:, 0], cells[:, 1]] += self.f(points)  #!
        return grid.flatten()

pool = Pool()
opt = torch.optim.Adam(pool.parameters(), lr=0.01)
for _ in range(3):
    loss = pool(torch.randn(40, 3), torch.randint(0, 4, (40, 2))).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "messages of edges": PLAIN,
    "a sum that is assigned": PLAIN.replace("+= msg", "= inbox[dst] + msg"),
    "a difference": PLAIN.replace("+= msg", "-= msg"),
    "a sum of several": PLAIN.replace("+= msg", "= inbox[dst] + msg + 0.1 * h[dst]"),
    "counts of neighbours": COUNTED + "    degree[dst] += 1  #!\n    inbox = inbox / degree.clamp(min=1)[:, None]\n"
    + STEP,
    "two indices in a method": FUNCTION,
    "by index_put_": PLAIN.replace("inbox[dst] += msg", "inbox.index_put_((dst,), inbox[dst] + msg)"),
    "several rounds of messages": LOOP.replace("    inbox = torch.zeros(6, 4)\n", "    inbox = h.clone()\n")
    + "    for _ in range(2):\n        inbox[dst] += torch.tanh(inbox[src])  #!\n" + STEP,
    "only one of the runs repeats": PLAIN.replace(
        "    h =", "    src = dst = torch.randperm(6) if _ == 0 else torch.randint(0, 3, (8,))\n    h ="),
}  # fmt: skip
BANK = LOOP + "    inbox.index_add_(0, dst, msg)\n" + STEP
RIGHT = {
    "index_add_": PLAIN.replace("inbox[dst] += msg  #!", "inbox.index_add_(0, dst, msg)"),
    "index_put_ with accumulate": PLAIN.replace(
        "inbox[dst] += msg  #!", "inbox.index_put_((dst,), msg, accumulate=True)"),
    "index_put_ with accumulate by position": PLAIN.replace(
        "inbox[dst] += msg  #!", "inbox.index_put_((dst,), inbox[dst] + msg, True)"),
    "distinct indices": PLAIN.replace("[1, 2, 3, 1, 2, 3, 5, 0]", "[0, 1, 2, 3, 4, 5, 6, 7]")
    .replace("zeros(6, 4)", "zeros(8, 4)").replace("Embedding(6", "Embedding(8").replace("randn(6)", "randn(8)"),
    "a mask": PLAIN.replace("inbox[dst] += msg  #!", "inbox[y > 0] += msg[:6][y > 0]"),
    "one item": PLAIN.replace("inbox[dst] += msg  #!", "inbox[2] += msg[0]"),
    "values that replace": PLAIN.replace("+= msg  #!", "= msg"),
    "other items are read": PLAIN.replace("+= msg  #!", "= inbox[src] + msg"),
    "an average of prototypes": BANK + "    bank = torch.zeros(6, 4)\n"
    "    bank[dst] += 0.1 * (msg.detach() - bank[dst])\n",
    "an average with its old value": BANK + "    bank = torch.zeros(6, 4)\n    old = bank[dst]\n"
    "    bank[dst] += 0.1 * (msg.detach() - old)\n",
    "an average with momentum": BANK + "    bank = torch.zeros(6, 4)\n"
    "    bank[dst] = 0.9 * bank[dst] + 0.1 * msg.detach()\n",
    "sums of all values of an item": BANK + "    total = torch.zeros(6, 4).index_add_(0, dst, msg.detach())\n"
    "    bank = torch.zeros(6, 4)\n    bank[dst] += 0.1 * total[dst] / 2\n",
    "padding that one item takes": PLAIN.replace("[1, 2, 3, 1, 2, 3, 5, 0]", "[1, 2, 3, 4, 5, 0, 0, 0]"),
    "a decay of items": PLAIN.replace(
        "inbox[dst] += msg  #!", "inbox.index_add_(0, dst, msg)\n    y[dst] *= 0.9"),
}  # fmt: skip
LOGITS = BANK + "with torch.no_grad():\n    logits = readout.weight[0] @ torch.randn(4, 6)\n"
RIGHT |= {
    "a penalty of ids": LOGITS + "    logits[dst] -= 0.6\n",
    "a reward of ids": LOGITS + "    reward = 0.6\n    logits[dst] += reward\n",
    "a mask of ids": BANK + "bias = torch.zeros(6)\nbias[dst] += -1e4\n",
}
WORDS = "where its index is repeated"


@pytest.mark.parametrize("name", WRONG)
def test_values_that_are_lost_are_counted(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_items_that_get_each_value_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


def test_the_sentence_says_how_many_values_are_lost(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, PLAIN) if WORDS in each.text)
    assert "`inbox[dst] += ...` adds one value" in found.text
    assert "3 of 8 values are lost" in found.text
