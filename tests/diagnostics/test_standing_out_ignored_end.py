"""Checks the sentence about losses that ignore the end of sequences, because the padding has the same id."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

TEXT = """\
import torch.nn.functional as F
EOS, SOS = 0, 1
PAD = EOS  #!
net = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
words = [torch.tensor([SOS, *word] + [EOS]) for word in ([3, 4], [5, 6, 7], [8])]
batch = nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=PAD)
for _ in range(4):
    loss = F.cross_entropy(net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    opt.step()
token, out = torch.tensor(SOS), []
while len(out) < 5 and token != EOS:
    token = net(token).argmax()
    out.append(token)
"""
IDS = "EOS, SOS = 0, 1\nPAD = EOS  #!\n"
OWN = TEXT.replace("PAD", "ids['<pad>']").replace("EOS", "ids['<eos>']").replace("SOS", "ids['<sos>']")
WRONG = {
    "one name for the other": TEXT,
    "a dict": "ids = {'<pad>': 0,  #!\n    '<eos>': 0, '<sos>': 1}\n" + OWN.replace(
        "ids['<eos>'], ids['<sos>'] = 0, 1\nids['<pad>'] = ids['<eos>']  #!\n", ""),
    "attributes": TEXT.replace(IDS, (
        "class ids:\n    eos_id: int = 0\n    sos_id: int = 1\n    pad_id: int = 0  #!\n")).replace(
        "PAD", "ids.pad_id").replace("EOS", "ids.eos_id").replace("SOS", "ids.sos_id"),
    "a module": TEXT.replace("net = nn", "criterion = nn.NLLLoss(ignore_index=PAD)\nnet = nn", 1).replace(
        "F.cross_entropy(", "criterion(").replace(", ignore_index=PAD)\n    opt", ")\n    opt").replace(
        ".flatten(0, 1)", ".flatten(0, 1).log_softmax(-1)"),
}  # fmt: skip
RIGHT = {
    "ids of their own": TEXT.replace("PAD = EOS", "PAD = 2"),
    "another id is ignored": TEXT.replace("ignore_index=PAD", "ignore_index=-100"),
    "a loss of all places too": TEXT.replace("    opt.zero", "    loss = loss + F.cross_entropy(\n"
        "        net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())\n    opt.zero"),
    "no end is put": TEXT.replace(" + [EOS]", ""),
    "no end is sought": TEXT.replace(" and token != EOS", ""),
}  # fmt: skip
WORDS = "no target is the end"


@pytest.mark.parametrize("name", WRONG)
def test_an_ignored_end_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_ids_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
