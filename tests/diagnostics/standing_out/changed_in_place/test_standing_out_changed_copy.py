"""Checks the sentence about items that an index tensor copies and that a function only changes in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = "net, bank = nn.Linear(4, 4), torch.randn(32, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
UPDATE = """\
@torch.no_grad()
def update(features, index):
    entries = bank[index]
    entries.mul_(0.5).add_(features, alpha=0.5)  #!
    entries.div_(entries.norm(dim=1, keepdim=True))

"""
TRAIN = """\
for _ in range(3):
    index = torch.randint(0, 32, (8,))
    features = net(torch.randn(8, 4))
    loss = (features * bank[index]).sum().neg()
    opt.zero_grad()
    loss.backward()
    opt.step()
    update(features.detach(), index)
"""
BLEND = """\
def blend(rows, fresh):
    rows.mul_(0.5).add_(fresh, alpha=0.5)  #!
    rows.div_(rows.norm(dim=1, keepdim=True))

@torch.no_grad()
def update(features, index):
    blend(bank.index_select(0, index), features)

"""
WRONG = {
    "a function that is given it": START + BLEND + TRAIN,
    "a method that is given it": START + BLEND.replace("def blend(rows", "class Mix:\n  def blend(self, rows").replace(
        "\n    blend(bank.index_select(0, index)", "\n    Mix().blend(fresh=features, rows=bank[index])#"
    ) + TRAIN,
    "index_select": START + UPDATE.replace("bank[index]", "torch.index_select(bank, 0, index)") + TRAIN,
    "torch by another name": "import torch as th\n" + START
    + UPDATE.replace("bank[index]", "th.index_select(bank, 0, index)") + TRAIN,
    "methods": START + UPDATE + TRAIN,
    "an augmented assignment": START + UPDATE.replace("entries.mul_(0.5).add_(features, alpha=0.5)", "entries *= 0.5")
    + TRAIN,
    "its shape is read": START
    + UPDATE.replace("    entries.mul_", "    fresh = features[torch.randint(8, (len(entries),))]\n    entries.mul_")
    + TRAIN,
    "its shape is read in a condition": START
    + BLEND.replace("    rows.mul_", "    if rows.size(0) == 0:\n        return\n    rows.mul_").replace(
        "True))", "True)).add_(torch.rand_like(rows))"
    )
    + TRAIN,
    "an initialiser": START.replace("\n", "\nimport torch.nn.init as init\n", 1)
    + UPDATE.replace("entries.mul_(0.5).add_(features, alpha=0.5)", "init.normal_(entries, std=0.1)")
    + TRAIN,
    "a part of it": START + UPDATE.replace("entries.mul_(0.5).add_(features, alpha=0.5)", "entries[:2] = 0.0") + TRAIN,
}  # fmt: skip
RIGHT = {
    "a function that is given a view": START + BLEND.replace("bank.index_select(0, index)", "bank[:8]") + TRAIN,
    "a function that gives it back": START
    + BLEND.replace("True))\n", "True))\n    return rows\n").replace("    blend(", "    bank[index] = blend(")
    + TRAIN,
    "a function that keeps it": START
    + "kept = []\n"
    + BLEND.replace("True))\n", "True))\n    kept.append(rows)\n")
    + TRAIN,
    "a global name": START + UPDATE.replace("    entries = ", "    global entries\n    entries = ") + TRAIN,
    "written back": START + UPDATE.replace("True))\n", "True))\n    bank[index] = entries\n") + TRAIN,
    "returned": START + UPDATE.replace("True))\n", "True))\n    return entries\n") + TRAIN,
    "a view": START + UPDATE.replace("bank[index]", "bank[:8]") + TRAIN,
    "printed": START + UPDATE.replace("True))\n", "True))\n    print(entries.sum())\n") + TRAIN,
    "given away": START + "kept = []\n" + UPDATE.replace("True))\n", "True))\n    kept.append(entries)\n") + TRAIN,
    "given to another function by its shape too": START
    + "kept = {}\n"
    + UPDATE.replace("True))\n", "True))\n    kept.update({entries.shape: entries})\n")
    + TRAIN,
    "an initialiser of what is written back": START
    + UPDATE.replace("True))\n", "True))\n    nn.init.normal_(entries[len(entries) - 1])\n    bank[index] = entries\n")
    + TRAIN,
    "the default of a function inside": START
    + UPDATE.replace("True))\n", "True))\n    def closure(x=entries):\n        return x.sum()\n    closure()\n")
    + TRAIN,
    "in a condition": START
    + UPDATE.replace("True))\n", "True))\n    if entries.sum() > 99:\n        print(1)\n")
    + TRAIN,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_copy_that_only_is_changed_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "copies items" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_copy_that_is_used_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "copies items" in each.text] == []


def test_the_reason_is_that_of_the_index(tmp_path: Path) -> None:
    body = START + UPDATE.replace("bank[index]", "bank[[0, 2, 4, 5, 6, 7, 8, 9]]") + TRAIN
    (found,) = (each for each in sentences(tmp_path, body) if "copies items" in each.text)
    assert ", because the index is a list: " in found.text
    body = START + UPDATE.replace("bank[index]", "bank[index.numpy()]") + TRAIN
    (found,) = (each for each in sentences(tmp_path, body) if "copies items" in each.text)
    assert "because" not in found.text
