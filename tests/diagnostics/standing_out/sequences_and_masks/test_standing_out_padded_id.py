"""Checks the sentence about ids that are those of the padding, between others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import run_command
from support.standing_out import marked, sentences

NET = """\
from torch.nn.utils.rnn import pad_sequence
table, out = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 9)
opt = torch.optim.Adam([*table.parameters(), *out.parameters()], lr=0.01)
lists = [torch.tensor(ids) for ids in ([1, 0, 2], [0, 3], [4, 5, 0, 0, 6], [7, 8], [8, 0, 1])]
for _ in range(3):
    x = pad_sequence(lists, batch_first=True)
    loss = nn.functional.cross_entropy(out(table(x).sum(1)), torch.tensor([1, 2, 3, 4, 5]))  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LISTS = "torch.tensor(ids) for ids in ([1, 0, 2], [0, 3], [4, 5, 0, 0, 6], [7, 8], [8, 0, 1])]"
PLAIN = NET.replace("  #!", "")
WRONG = {
    "a list of numbers from 0": NET,
    "in a module": NET.replace("table, out =", "net = nn.Sequential(nn.Embedding(9, 4, padding_idx=0))\ntable, out =")
    .replace("nn.Embedding(9, 4, padding_idx=0), nn.Linear", "net[0], nn.Linear").replace("table(x)", "net(x)"),
    "a function": NET.replace("opt = ", "from functools import partial\nlook = partial(nn.functional.embedding, "
        "padding_idx=-9)\nopt = ").replace("table(x)", "look(x, table.weight)"),
}  # fmt: skip
BAG = NET.replace("nn.Embedding(9, 4", "nn.EmbeddingBag(9, 4").replace("table(x).sum(1)", "table(x)")
WRONG["a bag"] = BAG
WRONG["a function for bags"] = BAG.replace("table(x)", (
    "nn.functional.embedding_bag(x, table.weight, mode='sum', padding_idx=0)"))  # fmt: skip
RIGHT = {
    "bags of numbers from 1": BAG.replace("  #!", "").replace("torch.tensor(ids)", "torch.tensor(ids) % 8 + 1"),
    "bags of places": BAG.replace("  #!", "").replace("table(x)", (
        "table(torch.cat(lists), torch.tensor([0, 3, 5, 10, 12]))")),
    "words of bags that are dropped": BAG.replace("  #!", "").replace("torch.tensor(ids)", (
        "torch.tensor(ids) % 8 + 1")).replace("table(x)", "table(x.masked_fill(torch.rand(x.shape) < 0.2, 0))"),
    "numbers from 1": PLAIN.replace("torch.tensor(ids)", "torch.tensor(ids) % 8 + 1").replace(
        "[1, 0, 2], [0, 3], [4, 5, 0, 0, 6], [7, 8], [8, 0, 1]", "[1, 2], [3], [4, 5, 6], [7], [1, 3]"),
    "padding on the left": PLAIN.replace("0, 2], [0, 3], [4, 5, 0, 0, 6]", "1, 2], [0, 3], [4, 5, 5, 5, 6]").replace(
        "[8, 0, 1]", "[8, 2, 1]").replace("pad_sequence(lists, batch_first=True)", (
        "pad_sequence([ids.flip(0) for ids in lists], batch_first=True).flip(1)")),
    "empty places of a board": PLAIN.replace("lists = [", "lists = [torch.tensor([1, 0, 0, 2, 0, 0, 1])] * 5 + [")
    .replace("pad_sequence(lists", "pad_sequence(lists[:5]"),
    "time first": PLAIN.replace("torch.tensor(ids)", "torch.tensor(ids) % 8 + 1").replace(
        "[1, 0, 2], [0, 3], [4, 5, 0, 0, 6], [7, 8], [8, 0, 1]", "[1, 2], [3], [4, 5, 6], [7], [1, 3]").replace(
        "pad_sequence(lists, batch_first=True)", "pad_sequence(lists)").replace("sum(1)", "sum(0)"),
    "no padding": PLAIN.replace(", padding_idx=0", ""),
    "another padding": PLAIN.replace("padding_idx=0", "padding_idx=8").replace("batch_first=True", (
        "batch_first=True, padding_value=8")).replace("[7, 8], [8, 0, 1]", "[7, 1], [1, 0, 1]"),
    "two parts that are padded apart": PLAIN.replace("lists = [", "pairs = [").replace(LISTS, (
        "torch.tensor([1] * n) for n in (4, 2, 3, 2, 4)]\nparts = [torch.tensor([2] * n) for n in (3, 9, 1, 5, 2)]"))
    .replace("pad_sequence(lists, batch_first=True)", (
        "torch.cat([pad_sequence(each, batch_first=True) for each in (pairs, parts)], 1)")),
    "words that are dropped": PLAIN.replace("0, 2], [0, 3], [4, 5, 0, 0, 6]", "1, 2], [4, 3], [4, 5, 5, 5, 6]").replace(
        "[8, 0, 1]", "[8, 2, 1]").replace("batch_first=True)", "batch_first=True)\n    x[torch.rand(5, 5) < 0.2] = 0"),
    "categories that are missing": PLAIN.replace("lists = [", "lists = [ids * (torch.rand(6) > 0.2) for ids in "
        "torch.randint(1, 9, (5, 6))]; other = ["),
    "batch first and time first": PLAIN.replace("[1, 0, 2], [0, 3], [4, 5, 0, 0, 6], [7, 8], [8, 0, 1]", (
        "[1, 2], [3], [4, 5, 6], [7], [1, 3]")).replace("table(x).sum(1)", (
        "table(x).sum(1) + table(pad_sequence(lists)).sum(0)")),
}  # fmt: skip
DROPPED = PLAIN.replace("lists =", "import random, numpy\nrng = numpy.random.default_rng(0)\n{}\nlists =")
WRONG["beside a random choice"] = NET.replace("lists =", "import random\nnext_of = lambda each: each + 1 if "
    "random.random() < 0.5 else random.choice([3, 5])\nlists =")  # fmt: skip
RIGHT |= {
    "words of lists that are dropped": DROPPED.format(
        "drop = lambda ids: [0 if random.random() < 0.1 else each for each in ids]"),
    "items of arrays that are hidden": DROPPED.format(
        "def hide(ids):\n    ids[rng.random(ids.shape) < 0.1] = 0\n    return ids"),
    "one item of each list": DROPPED.format("def hide(ids):\n    ids[random.randrange(len(ids))] = 0"),
    "a mask of arrays": DROPPED.format("def hide(ids):\n    keep = rng.random(ids.shape) > 0.1\n    return ids * keep"),
    "words that are not known": DROPPED.format("known = lambda ids: [{{1: 1}}.get(each, 0) for each in ids]"),
}  # fmt: skip
OUTSIDE = "import random\nnumbers, row = {}, [random.randint(1, 8)] * 3\nnumbers['pad'] = 0\nrow[1:] = [0] * 2\n"
WRONG["a dictionary, and padding outside torch"] = OUTSIDE + NET
WORDS = "between other ids"


@pytest.mark.parametrize("name", WRONG)
def test_an_item_with_the_id_of_the_padding_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "gets id 0, its `padding_idx`, between other ids in 9 of 15 rows" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_padding_around_a_row_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


SPECIAL = """\
import torch
from torch import nn
net = torch.jit.script(nn.Sequential(nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 1)))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randint(0, 9, (4, 5))).square().mean().backward()
opt.step()
many = torch.vmap(nn.Embedding(9, 4, padding_idx=0))(torch.ones(2, 3, 2, dtype=torch.long))
print("ended", many.shape)
"""


def test_scripts_and_batches_of_functorch_are_not_looked_at(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPECIAL)
    printed = run_command("explain", "--training", program).stdout
    assert "ended" in printed
    assert "could not be recorded" not in printed
