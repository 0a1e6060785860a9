"""Checks the sentence about a temperature that divides the scores of one of two models only."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

SCRIPT = """\
import torch.nn.functional as F
teacher, student = nn.Linear(6, 4), nn.Linear(6, 4)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
T = 4.0
class Soft(nn.Module):
    def __init__(self, temperature=3.0):
        super().__init__()
        self.temperature = temperature
    def forward(self, out, goal):
        log_p, q = F.log_softmax(out / self.temperature, 1), goal.softmax(1)
        return -(q * log_p).sum(1).mean() * self.temperature ** 2  #?
soft = Soft()
x = torch.randn(40, 6)
with torch.no_grad():
    stored = teacher(x)
for part in torch.arange(40).split(10):
    out, goal = student(x[part]), stored[part]
    loss = {}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KL = "F.kl_div(F.log_softmax({}, -1), F.softmax({}, -1), reduction='batchmean')"
WRONG = {
    "the student alone": SCRIPT.format(KL.format("out / T", "goal") + " * T ** 2  #!"),
    "the teacher alone": SCRIPT.format(KL.format("out", "goal / T") + " * T ** 2  #!"),
    "numbers": SCRIPT.format(KL.format("out", "goal / 3.0") + " * 9.0  #!"),
    "a product": SCRIPT.format("soft(out, goal)").replace("#?", "#!"),
    "cross entropy": SCRIPT.format("F.cross_entropy(out, (goal / T).softmax(1)) * T * T  #!"),
    "logarithms": SCRIPT.format(
        "nn.KLDivLoss(log_target=True)("
        "(out / T).log_softmax(1), teacher(x[part]).detach().log_softmax(1)) * (T * T)  #!"
    ),
}
RIGHT = {
    "both": SCRIPT.format(KL.format("out / T", "goal / T") + " * T ** 2"),
    "divided before": SCRIPT.format(KL.format("out / T", "goal") + " * T ** 2").replace("teacher(x)", "teacher(x) / T"),
    "none": SCRIPT.format(KL.format("out", "goal")),
    "a scale": SCRIPT.format(KL.format("out / 8.0", "goal")),
    "a scale of the student": SCRIPT.format(KL.format("out", "goal")).replace(
        "teacher, student = nn.Linear(6, 4), nn.Linear(6, 4)",
        "teacher = nn.Linear(6, 4)\nclass Student(nn.Linear):\n    t = 8.0\n    def forward(self, x):\n"
        "        return super().forward(x) / self.t\nstudent = Student(6, 4)",
    ),
    "in the weights": SCRIPT.format(KL.format("out / T", "goal") + " * T ** 2").replace(
        "    stored", "    teacher.weight.div_(T), teacher.bias.div_(T)\n    stored"
    ),
    "scaled in place": SCRIPT.format(KL.format("out / T", "goal") + " * T ** 2").replace(
        "    stored", "    teacher.weight.mul_(0.25), teacher.bias.mul_(0.25)\n    stored"
    ),
    "a mean over time steps": SCRIPT.format(KL.format("student(sum(x[part] for _ in range(T))) / T", "goal")).replace(
        "T = 4.0", "T = 4"
    ),
    "sharpened targets": SCRIPT.format(KL.format("out", "goal / 0.4")),
    "softened targets": SCRIPT.format("F.cross_entropy(out, (goal / 2).softmax(1))"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_temperature_of_one_side_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "by a temperature" in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_temperatures_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "by a temperature" in each.text] == []
