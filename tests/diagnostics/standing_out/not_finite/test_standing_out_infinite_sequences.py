"""Checks the sentence about sequences whose CTC loss is infinite."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import HEAD, marked, sentences

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


FRONT = """\
class Config:
    zero_infinity: bool = True  # set
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(3, 3, 3, stride=2, padding=1) for _ in range(2))
        self.head = nn.Linear(3, 6)
    def forward(self, x):
        for conv in self.convs:
            x = conv(x)  # shorter
        return self.head(x.mT).log_softmax(2).transpose(0, 1)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
ctc = nn.CTCLoss(0, "mean", Config.zero_infinity)  # set
frames, labels = torch.tensor([32, 8, 32, 8]), torch.tensor([4, 4, 4, 4])
for _ in range(4):
    loss = ctc(net(torch.randn(4, 3, 32)), torch.arange(1, 5).repeat(4, 1), frames // 4, labels)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


NO_FIELD = FRONT.replace("zero_infinity: bool = True  # set", "pass")
PLACED = NO_FIELD.replace("Config.zero_infinity", "True")
OPTIONS = NO_FIELD.replace("class Config", "options = {'zero_infinity': True}  # set\nclass Config").replace(
    '0, "mean", Config.zero_infinity)  # set', "**options)")  # fmt: skip
STACKED = (
    PLACED.replace("x = conv(x)  # shorter", "pass")
    .replace("self.head(x.mT)", "self.head(x.mT.reshape(4, 8, 12)  # shorter\n        )")
    .replace("Linear(3, 6)", "Linear(12, 6)")
)


@pytest.mark.parametrize("script", [PLACED, OPTIONS, STACKED])
def test_the_setting_and_the_layers_before_are_labelled(tmp_path: Path, script: str) -> None:
    (found,) = (each for each in sentences(tmp_path, script) if WORDS in each.text)
    lines = ["", *(HEAD + script).splitlines()]
    labelled = {label.text: lines[label.span.line] for label in found.labels}
    assert labelled["`zero_infinity` is set here"].endswith("# set")
    assert labelled["shortened here: 32 become 8"].endswith("# shorter")


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
