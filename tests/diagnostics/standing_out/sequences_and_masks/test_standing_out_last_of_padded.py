"""Checks the sentence about the last time step of padded sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
rnn, head = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 1)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
lengths = torch.tensor([6, 2, 4, 6])
for _ in range(4):
    x = torch.randn(4, 6, 3)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
    last = states[:, -1]  #!
    loss = head(last).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TIME_FIRST = NET.replace("batch_first=True", "batch_first=False").replace("randn(4, 6, 3)", "randn(6, 4, 3)").replace(
    "states[:, -1]", "states[-1]")  # fmt: skip
WRONG = {
    "rows first": NET,
    "with columns": NET.replace("states[:, -1]", "states[:, -1, :]"),
    "time first": TIME_FIRST,
    "sorted": NET.replace("[6, 2, 4, 6]", "[6, 6, 4, 2]").replace(", enforce_sorted=False", ""),
}
RIGHT = {
    "one length": NET.replace("[6, 2, 4, 6]", "[6, 6, 6, 6]"),
    "each its own": NET.replace("states[:, -1]", "states[torch.arange(4), lengths - 1]"),
    "the last state": NET.replace("states[:, -1]", "rnn(packed)[1][-1]"),
    "turned around": NET.replace("states[:, -1]", "states.index_select(1, torch.arange(5, -1, -1))[:, -1]"),
    "the whole ones": NET.replace("states[:, -1]", "states.index_select(0, torch.tensor([0, 3]))[:, -1]"),
    "another padding": NET.replace(
        "states, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)",
        ("states, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True, padding_value=-1.0)"),
    ),
    "the first": NET.replace("states[:, -1]", "states[:, 0]"),
    "one row": NET.replace("states[:, -1]", "states[-1]"),
    "one column": NET.replace("states[:, -1]", "states[:, :, -1:].mean(1).expand(4, 5)"),
}
WORDS = "of 4 sequences, and `pad_packed_sequence()` has zeros there"


@pytest.mark.parametrize("name", WRONG)
def test_the_last_step_of_padded_sequences_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.endswith("the sequences have 18 time steps in all, of 24")
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_indices_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


RAGGED = """\
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence
embed, rnn, head = nn.Embedding(9, 3, padding_idx=0), nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 1)
opt = torch.optim.Adam([*embed.parameters(), *rnn.parameters(), *head.parameters()], lr=0.01)
rows = [torch.randint(1, 9, (n,)) for n in (6, 2, 4, 6)]
lengths = torch.tensor([len(row) for row in rows])
for _ in range(4):
    ids = pad_sequence(rows, batch_first=True)
    states, (h, _) = rnn(embed(ids))  #!
    loss = head(h[-1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LAST = RAGGED.replace("h[-1]", "states[:, -1]")
FILLED = RAGGED.replace("    ids = pad_sequence(rows, batch_first=True)", (
    "    ids = torch.zeros(4, 6, dtype=torch.long)\n"
    "    for i, row in enumerate(rows):\n"
    "        ids[i, : len(row)] = row"))  # fmt: skip
TURNED = RAGGED.replace("ids = pad_sequence(rows, batch_first=True)", "ids = pad_sequence(rows)").replace(
    "embed(ids)", "embed(ids).transpose(0, 1)")  # fmt: skip
MIXED = RAGGED.replace("embed(ids)", "embed(ids[torch.randperm(4)[:3]])")
BOTH = RAGGED.replace("(3, 5, batch_first=True)", "(3, 5, batch_first=True, bidirectional=True)").replace(
    "Linear(5", "Linear(10").replace("h[-1]", "torch.cat([h[-2], h[-1]], 1)")  # fmt: skip
PADDED = {
    "the last state": RAGGED,
    "the last result": LAST,
    "zeros that lines fill": FILLED,
    "turned": TURNED,
    "mixed rows": MIXED,
    "two directions": BOTH,
    "the last results of two directions": BOTH.replace("torch.cat([h[-2], h[-1]], 1)", "states[:, -1]"),
}
DECODER = RAGGED.replace("opt =", "back = nn.LSTM(5, 5, batch_first=True)\nopt =").replace("head(h[-1])", "head(y)")
RUNS_RIGHT = {
    "a decoder with attention": DECODER.replace("  #!", "").replace("    loss", (
        "    scores = (states @ h[-1][:, :, None]).squeeze(2).masked_fill(ids == 0, -1e9)\n"
        "    y = back((scores.softmax(1)[:, :, None] * states).sum(1, keepdim=True), (h, h))[0]\n    loss")),
    "the whole ones": RAGGED.replace("embed(ids)", "embed(ids[lengths == 6])"),
    "some of the whole ones": RAGGED.replace("embed(ids)", (
        "embed(ids[(lengths == 6).nonzero().squeeze(1)[torch.randperm(2)]])")),
    "the last step is held": FILLED.replace("= row\n", "= row\n        ids[i, len(row) :] = row[-1]\n").replace(
        "embed(ids)", "ids").replace("randint(1, 9, (n,))", "randn(n, 3)").replace("4, 6, dtype=torch.long", "4, 6, 3"),
    "the state at the first step": BOTH.replace("h[-2]", "states[torch.arange(4), lengths - 1, :5]"),
    "packed": RAGGED.replace("embed(ids)", (
        "pack_padded_sequence(embed(ids), lengths, batch_first=True, enforce_sorted=False)")),
    "each its own": RAGGED.replace("h[-1]", "states[torch.arange(4), lengths - 1]"),
    "padding before": RAGGED.replace("(rows, batch_first=True)", "(rows, batch_first=True, padding_side='left')"),
    "turned round": RAGGED.replace("embed(ids)", "embed(ids.flip(1))"),
    "one length": RAGGED.replace("(6, 2, 4, 6)", "(6, 6, 6, 6)"),
    "no lengths": RAGGED.replace("lengths = torch.tensor([len(row) for row in rows])\n", "").replace(
        ", pack_padded_sequence", ""),
}  # fmt: skip
AFTER = "state comes after the padding"


@pytest.mark.parametrize("name", PADDED)
def test_a_layer_that_runs_over_padding_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, PADDED[name]) if AFTER in each.text)
    assert "leaves padding at the end of 2 of 4" in found.text
    assert found.labels[0].span.line == marked(PADDED[name])


@pytest.mark.parametrize("name", RUNS_RIGHT)
def test_a_layer_whose_state_is_no_padding_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RUNS_RIGHT[name]) if AFTER in each.text] == []
