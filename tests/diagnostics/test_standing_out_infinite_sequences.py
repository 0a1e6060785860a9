"""Checks the sentence about sequences whose CTC loss is infinite."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SPEECH = """\
net = nn.Linear(3, 6)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
ctc = nn.CTCLoss(zero_infinity=True)
frames, labels = torch.tensor([8, 3, 8, 3]), torch.tensor([4, 4, 4, 4])
targets = torch.arange(1, 5).repeat(4, 1)
for _ in range(4):
    out = net(torch.randn(8, 4, 3)).log_softmax(2)
    loss = ctc(out, targets, frames, labels)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a module": SPEECH,
    "a function": SPEECH.replace("ctc(out, targets, frames, labels)", (
        "nn.functional.ctc_loss(out, targets, frames, labels, zero_infinity=True)")),
    "a sum": SPEECH.replace("zero_infinity=True", "zero_infinity=True, reduction='sum'"),
}  # fmt: skip
RIGHT = {
    "two losses": SPEECH.replace(
        "loss = ctc(", "loss = nn.functional.ctc_loss(out, targets, 8 + 0 * frames, labels) + ctc("),
    "long enough": SPEECH.replace("[8, 3, 8, 3]", "[8, 4, 8, 4]"),
    "a few": SPEECH.replace("[8, 3, 8, 3]", "[8] * 19 + [3]").replace("[4, 4, 4, 4]", "[4] * 20").replace(
        "repeat(4, 1)", "repeat(20, 1)").replace("randn(8, 4, 3)", "randn(8, 20, 3)"),
}  # fmt: skip
WORDS = "`zero_infinity` makes it 0"


@pytest.mark.parametrize("name", WRONG)
def test_sequences_that_are_left_out_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "is infinite for 8 of 16 sequences (8 have fewer steps than labels), and" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
