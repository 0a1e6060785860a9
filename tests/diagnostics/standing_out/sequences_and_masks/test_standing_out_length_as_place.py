"""Checks the sentence about an index of steps that is the length of a sequence."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import HEAD, marked, sentences

TEXTS = """\
words, rnn, out = nn.Embedding(9, 6, padding_idx=0), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 2)
opt = torch.optim.Adam([*words.parameters(), *rnn.parameters(), *out.parameters()], lr=0.01)
lengths = torch.randint(2, 9, (32,))
data = torch.randint(1, 9, (32, 8)) * (torch.arange(8) < lengths[:, None])
for _ in range(3):
    pick = torch.randperm(32)[:8]
    x, n, y = data[pick], lengths[pick], torch.randint(0, 2, (8,))
    h = rnn(words(x))[0]
    place = n.clamp(max=h.size(1) - 1)  #!
    loss = nn.functional.cross_entropy(out(h[torch.arange(8), place]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "lengths": TEXTS,
    "counts": TEXTS.replace("n.clamp(max=", "torch.clamp((x != 0).sum(1), max="),
    "gather": TEXTS.replace("h[torch.arange(8), place]", "h.gather(1, place[:, None, None].expand(-1, 1, 5))[:, 0]"),
    "a least value, too": TEXTS.replace("clamp(max=h", "clip(0, h"),
}
RIGHT = {
    "the place of the last step": TEXTS.replace("n.clamp", "(n - 1).clamp"),
    "one less afterwards": TEXTS.replace("- 1)", ") - 1"),
    "a table of lengths": TEXTS.replace("h[torch.arange(8), place]", "h.mean(1) + table[place]").replace(
        "for _", "table = torch.randn(8, 5, requires_grad=True)\nfor _"
    ),
    "a place that is drawn": TEXTS.replace("n.clamp", "torch.randint(0, 9, (8,)).clamp"),
    "an id at this place": TEXTS.replace("for _", "data[torch.arange(32), lengths.clamp(max=7)] = 8\nfor _"),
    "an id at this place, by scatter": TEXTS.replace(
        "for _", "data.scatter_(1, lengths.clamp(max=7)[:, None], 8)\nfor _"
    ),
    "a state in front": TEXTS.replace(
        "h = rnn(words(x))[0]", ("h = torch.cat([torch.zeros(8, 1, 5), rnn(words(x))[0]], 1)")
    ),
}
GIVEN = "h = rnn(words({}))[0]"
RIGHT |= {
    f"a first token before the others, {n}": TEXTS.replace("randint(1, 9", "randint(2, 9").replace(
        GIVEN.format("x"), given
    )
    for n, given in enumerate((
        GIVEN.format("nn.functional.pad(x[:, :-1], (1, 0), value=1)"),
        GIVEN.format("torch.cat([torch.ones(8, 1, dtype=torch.long), x[:, :-1]], 1)"),
        "given = torch.ones_like(x)\n    given[:, 1:] = x[:, : x.size(1) - 1]\n    " + GIVEN.format("given"),
    ))
}  # fmt: skip
WORDS = "takes the step whose number is the length"


@pytest.mark.parametrize("name", WRONG)
def test_a_length_as_an_index_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_indices_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


MEASURED = """\
from torch.nn.utils.rnn import pad_sequence
rnn, head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
pool = [torch.randn(int(n), 8) for n in torch.randint(3, 12, (64,))]
for _ in range(4):
    seqs = [pool[i] for i in torch.randperm(64)[:16].tolist()]
    n = torch.tensor([len(s) for s in seqs])
    x = pad_sequence(seqs, batch_first=True)
    h, T = rnn(x)[0], x.size(1)
    last = torch.stack([row[min(len(s), T - 1)] for row, s in zip(h, seqs)])  #!
    loss = nn.functional.cross_entropy(head(last), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STACKED = "torch.stack([row[min(len(s), T - 1)] for row, s in zip(h, seqs)])"
PADDED = "pad_sequence(seqs, batch_first=True)"
FILLED = "torch.zeros(16, int(n.max()), 8)\n    for i, s in enumerate(seqs):\n        x[i, :len(s)] = s"
ENDED = """\
END, words, rnn, head = 0, nn.Embedding(30, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
opt = torch.optim.Adam([*words.parameters(), *rnn.parameters(), *head.parameters()], lr=0.01)
for _ in range(4):
    n = torch.randint(3, 11, (8,))
    n[:2] = 10
    texts = [torch.randint(1, 30, (k,)) for k in n.tolist()]
    ids = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=END)
    end = n.clamp(max=ids.size(1) - 1)
    loss = nn.functional.cross_entropy(head(rnn(words(ids))[0][torch.arange(8), end]), ids[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SEARCHED = ENDED.replace("n.clamp(max=ids.size(1) - 1)", (
    "torch.where((ids == END).any(1), (ids == END).int().argmax(1), ids.size(1) - 1)"))  # fmt: skip
STEPS = {
    "ids of a table with padding": ENDED.replace("(30, 8)", "(30, 8, padding_idx=0)")
    .replace("n.clamp(max=ids.size(1) - 1)", "torch.tensor([min(k, 9) for k in n.tolist()])")
    .replace("end]), ids[:, 0] % 2)", "end]), ids[:, 0] % 2)  #!"),
    "one by one": MEASURED,
    "gathered": MEASURED.replace(PADDED, FILLED).replace(
        STACKED, "h.gather(1, torch.where(n < T, n, T - 1).view(-1, 1, 1).expand(-1, 1, 8)).squeeze(1)"
    ),
}
OTHER_STEPS = {
    "the end of the text, which pads": ENDED,
    "the end of the text, which is searched": SEARCHED,
    "the end of the text in a table": SEARCHED.replace("(30, 8)", "(30, 8, padding_idx=0)"),
    "the last": MEASURED.replace("min(len(s), T - 1)", "len(s) - 1"),
    "a state before": MEASURED.replace(
        "x.size(1)\n", "x.size(1) + 1\n    h = torch.cat([torch.zeros(16, 1, 8), h], 1)\n"
    ),
    "shifted": MEASURED.replace("    h, T", "    x = torch.cat([torch.zeros(16, 1, 8), x[:, :-1]], 1)\n    h, T"),
}


@pytest.mark.parametrize("name", [*STEPS, *OTHER_STEPS])
def test_steps_that_are_measured(tmp_path: Path, name: str) -> None:
    script = (STEPS | OTHER_STEPS)[name]
    found = [each for each in sentences(tmp_path, script) if "whose number is the length" in each.text]
    expected = next((n for n, line in enumerate((HEAD + script).splitlines(), 1) if line.endswith("#!")), 0)
    assert [each.labels[0].span.line for each in found] == [expected] * (name in STEPS)
