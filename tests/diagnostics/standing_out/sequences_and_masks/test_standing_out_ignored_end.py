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
LOSS = "    loss = F.cross_entropy(net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)\n"
MASKED = """\
    logits, labels = net(batch[:, :-1]), batch[:, 1:].clone()
    labels[labels == PAD] = -100
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
"""
SET = "labels[labels == PAD] = -100"
FIELD = """\
class Tokens:
    def __init__(self):
        self.vocab = {"<|end|>": 0, "<|bos|>": 1}
        self.end_id = self.vocab["<|end|>"]
    @property
    def pad_id(self):
        return self.end_id  #!
ids = Tokens()
"""
EACH = "    each = F.cross_entropy(net(batch[:, :-1]).transpose(1, 2), batch[:, 1:], reduction='none')\n"


def masked(*changes: tuple[str, str]) -> str:
    """Returns the script with a mask in the targets, with some changes."""
    text = TEXT.replace(LOSS, MASKED)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


IDS = "EOS, SOS = 0, 1\nPAD = EOS  #!\n"
OWN = TEXT.replace("PAD", "ids['<pad>']").replace("EOS", "ids['<eos>']").replace("SOS", "ids['<sos>']")
UNSOUGHT = TEXT.partition("token, out")[0]
PARTS = "words = torch.tensor([t for word in words for t in word.tolist()]).split(4)\nbatch = nn"
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
    "targets that are set": masked(),
    "a property, and a configured number": masked(
        (IDS, FIELD + "ignored = -1\n"), ("EOS", "ids.end_id"), ("SOS", "1"), ("PAD", "ids.pad_id"),
        ("-100", "ignored"), ("flatten())", "flatten(), ignore_index=ignored)")),
    "filled in the data": TEXT.replace("for _ in", (
        "labels = torch.stack([row.masked_fill(row == PAD, -100) for row in batch])\nfor _ in"), 1).replace(
        "batch[:, 1:].flatten(), ignore_index=PAD", "labels[:, 1:].flatten()"),
    "chosen by where": masked((SET, "labels = torch.where(labels.ne(PAD), labels, -100)")),
    "a mask of the inputs' kind": masked((SET, "mask = (batch != PAD).long()\n    labels[mask[:, 1:] == 0] = -100")),
    "a product with a mask": TEXT.replace(LOSS, EACH + (
        "    keep = (batch[:, 1:] != PAD).float()\n    loss = (each * keep).sum() / keep.sum()\n")),
    "a choice by a mask": TEXT.replace(LOSS, EACH + "    loss = each[batch[:, 1:] != PAD].mean()\n"),
    "a canvas of ends, and a search in lists": TEXT.replace(
        "batch = nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=PAD)",
        "batch = torch.full((3, 5), EOS)\nfor place, word in enumerate(words):\n"
        "    batch[place, :len(word)] = word").replace("word] + [EOS]", "word]").replace(
        "while len(out) < 5 and token != EOS:", "for _ in range(5):").replace(
        "    out.append(token)", "    out.append(token.item())\nout = out[:out.index(EOS)] if 0 in out else out"),
    "a column of ends": TEXT.replace("    loss =", (
        "    batch = torch.cat([batch, torch.full((3, 1), EOS)], dim=1)\n    loss =")).replace(
        "word] + [EOS]", "word]"),
    "the padding is sought": TEXT.replace("token != EOS", "token != PAD"),
    "a prompt that is hidden as well": masked((SET, SET + "\n    for row in labels:\n        row[:1] = -100")),
    "a mask without the prompt": TEXT.replace(LOSS, EACH + (
        "    keep = batch[:, 1:] != PAD\n    keep[:, :1] = False\n    loss = (each * keep).sum() / keep.sum()\n")),
    "nothing is written with the model": UNSOUGHT,
    "rows of a canvas": UNSOUGHT.replace("batch = nn.utils.rnn.pad_sequence(words, batch_first=True, "
        "padding_value=PAD)", "batch = torch.full((3, 5), PAD)\nfor place, word in enumerate(words):\n"
        "    batch[place, :len(word)] = word") + "print((net(batch).argmax(-1) == batch).float().mean())\n",
    "the argument of the padding": TEXT.replace(LOSS, (
        "    logp = net(batch[:, :-1]).log_softmax(-1).gather(2, batch[:, 1:, None]).squeeze(2)\n"
        "    loss = -logp.masked_select(batch[:, 1:] != EOS).mean()\n")).replace(
        "PAD = EOS  #!\n", "").replace("value=PAD)", "value=EOS)  #!"),
}  # fmt: skip
RIGHT = {
    "ids of their own": TEXT.replace("PAD = EOS", "PAD = 2"),
    "another id is ignored": TEXT.replace("ignore_index=PAD", "ignore_index=-100"),
    "a loss of all places too": TEXT.replace("    opt.zero", "    loss = loss + F.cross_entropy(\n"
        "        net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())\n    opt.zero"),
    "no end is put": TEXT.replace(" + [EOS]", ""),
    "no end is sought": TEXT.replace(" and token != EOS", ""),
    "the first padding is kept": masked((
        SET, "hidden = labels == PAD\n    labels[hidden & (hidden.cumsum(1) > 1)] = -100")),
    "a mask of lengths": masked((
        "labels[labels == PAD]", "labels[torch.arange(4) >= torch.tensor([[3], [4], [2]])]")),
    "the end is written again": masked((
        SET, SET + "\n    labels[torch.arange(3), torch.tensor([2, 3, 1])] = EOS")),
    "places after an end": masked(("labels == PAD", "batch[:, :-1] == PAD")),
    "a loss for the end": masked((
        "labels.flatten())",
        "labels.flatten()) + F.multilabel_soft_margin_loss(logits[..., EOS], (batch[:, 1:] == EOS).float())")),
    "an unmasked part": TEXT.replace(LOSS, EACH + "    loss = (each * (batch[:, 1:] != PAD)).mean() + each.mean()\n"),
    "another number": masked(("= -100", "= 3")),
    "a likelihood of the end, by hand": TEXT.replace("net = nn", "stop, net = nn.Linear(8, 1), nn", 1).replace(
        "    opt.zero", "    ends = (batch[:, 1:] == EOS).float()\n"
        "    loss = loss - (ends * F.logsigmoid(stop(net[0](batch[:, :-1])).squeeze(2))).mean()\n    opt.zero"),
    "ids that are masked at random": masked((
        SET, SET + "\n    labels = labels.masked_fill(torch.rand(labels.shape) > 0.3, -100)")),
    "only before a text": TEXT.replace("[SOS, *word] + [EOS]", "[EOS, *word, SOS]"),
    "only places of its data": TEXT.replace("token != EOS", "(batch == EOS).any()"),
    "tags": TEXT.replace("batch[:, 1:].flatten()", "(batch[:, 1:] % 3).flatten()"),
    "tags of fewer kinds": TEXT.replace("(8, 9))", "(8, 4), nn.Linear(4, 10))"),
    "one stream of ends between texts": UNSOUGHT.replace("batch = nn", PARTS),
    "rows of one length": UNSOUGHT.replace("[3, 4], [5, 6, 7], [8]", "[3, 4, 2], [5, 6, 7], [8, 2, 3]"),
    "an end between two parts": UNSOUGHT.replace("[SOS, *word]", "[SOS, 8, EOS, *word]"),
    "sequences of a known length are written": UNSOUGHT + (
        "out = [SOS]\nfor _ in range(3):\n    out.append(net(torch.tensor(out))[-1].argmax().item())\n"),
    "only what another model reads ends": UNSOUGHT.replace("for _ in", (
        "source, batch = batch, nn.utils.rnn.pad_sequence([word[:-1] for word in words], True, PAD).clone()\n"
        "start = nn.Embedding(9, 9)\nfor _ in")).replace("net(batch[:, :-1])", (
        "(net(batch[:, :-1]) + start(source).sum(1, keepdim=True))")).replace("word[:-1] for", (
        "torch.tensor(word.tolist()[:-1]) for")),
    "steps without progress": TEXT.replace("PAD = EOS", "PAD, early_stop, waits = 2, 2, []").replace(
        "    opt.step()\n", "    opt.step()\n    early_stop += 1\n    waits.append(early_stop)\n"
        "    if early_stop == 9: break\n").replace("  #!", ""),
}  # fmt: skip
WORDS = "no target is the end"


@pytest.mark.parametrize("name", WRONG)
def test_an_ignored_end_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_ids_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
