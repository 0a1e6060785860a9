"""Decoders that run step by step and are given the target of a step at the same step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LISTED = """\
words, cell, out = nn.Embedding(9, 6), nn.GRUCell(6, 5), nn.Linear(5, 9)
opt = torch.optim.Adam([*words.parameters(), *cell.parameters(), *out.parameters()], lr=0.01)
def step(ids, h):
    h = cell(words(ids), h)
    return out(h), h
data = torch.randint(0, 9, (32, 4))
for _ in range(3):
    y = data[torch.randperm(32)[:8]]
    h, given, results, loss = torch.zeros(8, 5), torch.zeros(8, dtype=torch.long), [], 0
    for t in range(4):
        given = y[:, t] if t != 1 else given  #!
        logits, h = step(given, h)
        results.append(logits)
        given = logits.argmax(1)
    loss = nn.functional.cross_entropy(torch.stack(results, 1).reshape(-1, 9), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
IN_LOOP = LISTED.replace(
    "results.append(logits)", "loss = loss + nn.functional.cross_entropy(logits, y[:, t])"
).replace("    loss = nn.functional.cross_entropy(torch.stack(results, 1).reshape(-1, 9), y.reshape(-1))\n", "")
STORED = (
    LISTED.replace("results, loss = ", "results, loss = ")
    .replace("[], 0", "torch.zeros(8, 4, 9), 0")
    .replace("range(4)", "range(1, 4)")
    .replace("t != 1", "t != 2")
    .replace("results.append(logits)", "results[:, t] = logits")
    .replace("torch.stack(results, 1).reshape(-1, 9), y.reshape(-1)", "results[:, 1:].transpose(1, 2), y[:, 1:]")
)
EMBEDDED = (
    LISTED.replace("words(ids)", "ids")
    .replace("range(4)", "range(1, 4)")
    .replace("given = y[:, t] if t != 1 else given", "given = words(y)[:, t]")
    .replace("        given = logits.argmax(1)\n", "")
    .replace("torch.stack(results, 1).reshape(-1, 9), y.reshape(-1)", "torch.stack(results, 2), y[:, 1:]")
    .replace("    opt.zero", "    step(words(logits.max(1)[1]), h)\n    opt.zero")
)
AFTER = LISTED.replace("        given = y[:, t] if t != 1 else given  #!\n", "").replace(
    "given = logits.argmax(1)", "given = y[:, t] if t != 1 else logits.argmax(1)"
)
AUTOENCODER = (
    LISTED.replace(
        "    for t in range(4):\n",
        "    for t in range(4):\n        h = cell(words(y[:, t]), h)\n    for t in range(4):\n",
    )
    .replace("        given = y[:, t] if t != 1 else given  #!\n", "")
    .replace("step(given, h)", "(lambda h: (out(h), h))(cell(torch.zeros(8, 6), h))")
)
FEATURES = """\
words, down, up = nn.Embedding(9, 6), nn.Linear(6, 2), nn.Linear(2, 9)
opt = torch.optim.Adam([*words.parameters(), *down.parameters(), *up.parameters()], lr=0.01)
for _ in range(3):
    y, loss = torch.randint(0, 9, (8, 3)), 0
    for f in range(3):
        code = down(words(y[:, f])).tanh()
        loss = loss + nn.functional.cross_entropy(up(code), y[:, f])
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TAKEN = "        given = y[:, t] if t != 1 else given  #!\n        logits, h = step(given, h)\n"
FIRST = LISTED.replace(TAKEN, "").replace(
    "results.append(logits)\n        given = logits.argmax(1)",
    "results.append(out(h))\n        h = cell(words(y[:, t]), h)",
)
WRONG = {"a list": LISTED, "a loss for each step": IN_LOOP, "a tensor": STORED, "embeddings": EMBEDDED}
RIGHT = {
    "a state without a graph": LISTED.replace("h = cell(words(ids), h)", "h = cell(words(ids), h).detach()"),
    "a cell without a graph": LISTED.replace("cell(words", "torch.no_grad()(cell)(words"),
    "kept before the cell": FIRST,
    "kept in a tensor before the cell": FIRST.replace("[], 0", "torch.zeros(8, 4, 9), 0")
    .replace("results.append(out(h))", "results[:, t] = out(h)")
    .replace("torch.stack(results, 1)", "results"),
    "a loss before the cell": FIRST.replace(
        "results.append(out(h))", "loss = loss + nn.functional.cross_entropy(out(h), y[:, t])"
    ).replace("    loss = nn.functional.cross_entropy(torch.stack(results, 1).reshape(-1, 9), y.reshape(-1))\n", ""),
    "embeddings after the result": FIRST.replace("cell(words(y[:, t]), h)", "cell(looked_up[:, t], h)").replace(
        "    for t in range(4)", "    looked_up = words(y)\n    for t in range(4)"
    ),
    "computed before, kept after": FIRST.replace("results.append(out(h))", "logits = out(h)").replace(
        "h = cell(words(y[:, t]), h)", "h = cell(words(y[:, t]), h); results.append(logits.log_softmax(1))"
    ),
    "a first result above the loop": LISTED.replace("range(4):", "range(3):").replace(
        "[], 0", "[out(torch.zeros(8, 5))], 0"
    ),
    "all but the last result": LISTED.replace("[], 0", "[out(torch.zeros(8, 5))], 0").replace(
        "stack(results, 1)", "stack(results[:-1], 1)"
    ),
    "from the second step on": LISTED.replace("[], 0", "[step(y[:, 0], torch.zeros(8, 5))[0]], 0")
    .replace("range(4)", "range(1, 3)")
    .replace("torch.stack(results, 1).reshape(-1, 9), y.reshape(-1)", "torch.stack(results, 2), y[:, 1:]"),
    "moved in place": LISTED.replace(
        "    loss = nn", "    y = y.clone()\n    y.copy_(y.roll(-1, 1))\n    loss = nn"
    ).replace("if t != 1 else given", ""),
    "a copy that is not moved": LISTED.replace("    h, given", "    ids = y.clone()\n    h, given", 1)
    .replace("given = y[:, t]", "given = ids[:, t]")
    .replace("    loss = nn", "    y.copy_(y.roll(-1, 1))\n    loss = nn"),
    "an array of the ids that is moved": LISTED.replace("    h, given", "    ids = y.clone()\n    h, given", 1)
    .replace("given = y[:, t]", "given = ids[:, t]")
    .replace("    loss = nn", "    y.numpy()[:, :-1] = ids[:, 1:].numpy()\n    loss = nn"),
    "copied ids": LISTED.replace("        given = logits.argmax(1)\n", ""),
    "a counted place": IN_LOOP.replace("range(4)", "range(3)")
    .replace("given = y[:, t] if", "d = 0; given = y[:, t + d] if")
    .replace("        loss = loss", "        d = 1\n        loss = loss")
    .replace("(logits, y[:, t])", "(logits, y[:, t + d])"),
    "for the next step": AFTER,
    "in a tensor, for the next step": STORED.replace("        given = y[:, t] if t != 2 else given  #!\n", "").replace(
        "given = logits.argmax(1)", "given = y[:, t]"
    ),
    "the step before": LISTED.replace("y[:, t] if t != 1", "y[:, t - 1] if t"),
    "later targets": EMBEDDED.replace("range(1, 4)", "range(3)"),
    "a later target in the loop": IN_LOOP.replace("range(4)", "range(3)").replace(
        "(logits, y[:, t])", "(logits, y[:, t + 1])"
    ),
    "hidden in part": LISTED.replace("words(ids)", "words(ids) * (torch.rand(8, 1) < 0.5)"),
    "hidden by a mask": LISTED.replace("words(ids)", "words(ids) * keep").replace(
        "for t in", "keep = (torch.rand(8, 1) < 0.5).float()\n    for t in"
    ),
    "features": FEATURES,
    "an autoencoder": AUTOENCODER,
    "tags": LISTED.replace("y.reshape(-1))", "(y % 3).reshape(-1))"),
}
WORDS = "before it predicts this id"


@pytest.mark.parametrize("name", WRONG)
def test_targets_that_a_decoder_is_given_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_ids_of_the_step_before_are_not(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
