"""Checks the sentences about a masked model whose loss takes the places that it sees, or changed targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = """\
words, rnn, out = nn.Embedding(9, 6), nn.GRU(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 9)
opt = torch.optim.Adam([*words.parameters(), *rnn.parameters(), *out.parameters()], lr=0.01)
data, MASK = torch.randint(0, 8, (32, 8)), 8
for _ in range(3):
    x = data[torch.randperm(32)[:8]]
    hidden = torch.rand(x.shape) < 0.3
    labels, given = x.clone(), x.clone()
    labels[hidden] = -100  #!
    given[hidden] = MASK
    logits = out(rnn(words(given))[0])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 9), labels.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PATCHES = """\
token, one, out = nn.Parameter(torch.zeros(6)), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 6)
opt = torch.optim.Adam([token, *one.parameters(), *out.parameters()], lr=0.01)
data = torch.randn(32, 8, 6)
for _ in range(3):
    x = data[torch.randperm(32)[:8]]
    mask = torch.bernoulli(torch.full((8, 8), 0.5))
    given = x * (1 - mask)[..., None] + token * mask[..., None]
    error = (out(one(given)[0]) - x).square().mean(-1)
    loss = (error * (1 - mask)).sum() / (1 - mask).sum()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CHANGED = (
    WORDS.replace("labels, given = x.clone(), x.clone()", "given, batch = x, dict(labels=x)")
    .replace("labels[hidden] = -100  #!", "")
    .replace("given[hidden] = MASK", "given.masked_fill_(hidden, MASK)  #!")
    .replace("logits.reshape(-1, 9), labels.reshape(-1)", "logits[hidden], batch['labels'][hidden]")
)
CHOSEN = PATCHES.replace(
    "x * (1 - mask)[..., None] + token * mask[..., None]", ("torch.where(mask[..., None].bool(), token, x)")
).replace("(error * (1 - mask)).sum() / (1 - mask).sum()", ("error[mask == 0].mean()"))
WRONG = {
    "labels": (WORDS, "only places that the model sees"),
    "patches": (PATCHES, "only places that the model sees"),
    "patches that are chosen": (CHOSEN.replace("mask == 0", "~mask.bool()"), "only places that the model sees"),
    "changed labels": (CHANGED, "changes the targets, too"),
}
OBSERVED = PATCHES.replace(" + token * mask[..., None]", "").replace("[token, *one", "[*one")
RIGHT = {
    "entries that are missing": CHOSEN.replace("mask == 0", "~mask.bool()").replace("mask", "missing"),
    "tags of words": WORDS.replace("nn.Linear(10, 9)", "nn.Linear(10, 3)")
    .replace("-1, 9)", "-1, 3)")
    .replace("labels, given = x.clone()", "labels, given = x % 3"),
    "entries that are there": """\
absent, net = nn.Parameter(torch.zeros(6)), nn.Linear(6, 6)
opt = torch.optim.Adam([absent, *net.parameters()], lr=0.01)
def filled(x, there):
    return torch.where(there, x, absent)
for _ in range(3):
    x = torch.randn(16, 6)
    observed = torch.rand(16, 6) < 0.8
    out = net(filled(x, observed))
    loss = ((out - x) ** 2 * observed).sum() / observed.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "patches of a valid part": PATCHES.replace("(1 - mask)", "valid").replace(
        "    given", "    valid = 1 - mask\n    given"
    ),
    "hidden labels": WORDS.replace("labels[hidden]", "labels[~hidden]"),
    "hidden patches": PATCHES.replace("error * (1 - mask)", "error * mask").replace("/ (1 - mask)", "/ mask"),
    "a copy": CHANGED.replace("given, batch = x", "given, batch = x.clone()"),
    "both": PATCHES.replace(".sum()  #!", ".sum() + (error * mask).sum()"),
    "values that are missing": OBSERVED,
    "padding": WORDS.replace("torch.rand(x.shape) < 0.3", "torch.arange(8) >= torch.randint(3, 8, (8, 1))"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_loss_of_the_wrong_places_is_named(tmp_path: Path, name: str) -> None:
    source, words = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, source) if words in each.text)
    assert found.labels[0].span.line == marked(source)


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    texts = [each.text for each in sentences(tmp_path, RIGHT[name])]
    assert [each for each in texts if any(words in each for _, words in WRONG.values())] == []


ARRAYS = (
    WORDS.replace("x = data", "rows = data.numpy()")
    .replace(".numpy()[torch.randperm(32)[:8]]", ".numpy()[torch.randperm(32)[:8].numpy()]")
    .replace("hidden = torch.rand(x.shape)", "labels = torch.from_numpy(rows)  #!\n    hidden = torch.rand(8, 8)")
    .replace("    labels, given = x.clone(), x.clone()\n", "    rows[hidden.numpy()] = MASK\n")
    .replace("    labels[hidden] = -100  #!\n    given[hidden] = MASK\n", "    given = torch.from_numpy(rows)\n")
    .replace(
        "loss = nn.functional.cross_entropy(logits.reshape(-1, 9), labels.reshape(-1))",
        "each = nn.functional.cross_entropy(logits.mT, labels, reduction='none')\n    loss = (each * hidden).sum()",
    )
)
MADE_LATE = WORDS.replace("    labels[hidden] = -100  #!\n", "").replace(
    "    logits =", "    labels = given.clone()  #!\n    labels[~hidden] = -100\n    logits ="
)


ONE_ID = "at these places and no others"


@pytest.mark.parametrize("script", [ARRAYS, MADE_LATE])
def test_targets_that_are_all_the_hiding_id_are_named(tmp_path: Path, script: str) -> None:
    (found,) = (each for each in sentences(tmp_path, script) if ONE_ID in each.text)
    assert found.labels[0].span.line == marked(script)


@pytest.mark.parametrize(
    "script",
    [
        ARRAYS.replace("from_numpy(rows)  #!", "from_numpy(rows.copy())"),
        MADE_LATE.replace("labels = given.clone()", "labels = x.clone()"),
    ],
)
def test_targets_from_before_are_not_named(tmp_path: Path, script: str) -> None:
    assert not [each for each in sentences(tmp_path, script) if ONE_ID in each.text]
