"""Checks the sentence about statements that write to a tensor which they have just computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = "from torch.nn.utils.parametrizations import weight_norm\nnet = nn.Linear(4, 4)\nmask = torch.rand(4, 4) > 0.5\n"
TRAIN = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor i in range(3):\n    opt.zero_grad()\n"
STEP = "    net(torch.randn(8, 4)).square().mean().backward()\n"
END = "    opt.step()\n"
WORDS = "writes to a new tensor"

WRONG = {
    "some gradients": (NET + TRAIN + STEP + "    net.weight.grad[mask].mul_(0)  #!\n" + END, "that indexing makes"),
    "a clone": (NET + TRAIN + STEP + END + "    net.weight.data.clone().clamp_(-1, 1)  #!\n", "that `clone()` makes"),
    "a view of a copy": (NET + TRAIN + STEP + END + "    net.weight.data[mask].view(-1).zero_()  #!\n", "makes in the"),
    "a computed weight": (
        NET + "net = weight_norm(net)\nwith torch.no_grad():\n    net.weight.fill_(0.1)  #!\n" + TRAIN + STEP + END,
        "`net.weight.fill_(0.1)` writes to a new tensor",
    ),
}  # fmt: skip
RIGHT = {
    "an alias": NET + TRAIN + STEP + END + "    net.weight.data.clamp_(-1, 1)\n",
    "a row": NET + TRAIN + STEP + "    net.weight.grad[0].zero_()\n" + END,
    "an assignment": NET + TRAIN + STEP + "    net.weight.grad[mask] = 0\n" + END,
    "a result that is used": NET + TRAIN + STEP + END + "    small = net.weight.data.clone().clamp_(-1, 1)\n",
    "a copy that the program keeps": NET + "kept = []\ndef copied(w):\n    kept.append(w.clone())\n"
        "    return kept[-1]\n" + TRAIN + STEP + END
        + "    copied(net.weight.data).clamp_(-1, 1)\nprint(kept[0].sum())\n",
    "a cached copy": NET + "class Box:\n    pass\nbox = Box()\nbox.w = net.weight.detach().clone()\nbox.w.zero_()\n"
        + TRAIN + STEP + END,
    "a copy that a dict gets": NET + TRAIN + STEP + END + "half = {}\nfor name, p in net.named_parameters():\n"
        "    half.setdefault(name, p.detach().clone()).mul_(0.5)\nnet.load_state_dict(half)\n",
    "a copy that a function keeps": NET + "kept = []\ndef keep(w):\n    kept.append(w)\n    return w\n" + TRAIN + STEP
        + END + "keep(net.weight.detach() * 1.0).clamp_(0, 1)\nprint(len(kept))\n",
    "a new tensor": NET + TRAIN + "    torch.empty(4).normal_()\n" + STEP + END,
}  # fmt: skip


@pytest.mark.parametrize(("body", "text"), WRONG.values(), ids=WRONG)
def test_a_write_to_a_copy_is_named(tmp_path: Path, body: str, text: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_writes_that_another_line_can_read_are_left_alone(tmp_path: Path, body: str) -> None:
    assert not [each for each in sentences(tmp_path, body) if WORDS in each.text]
