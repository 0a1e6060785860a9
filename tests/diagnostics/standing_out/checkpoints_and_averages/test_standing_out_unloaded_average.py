"""Checks the sentence about averages that begin with what a new module was made with, while it was loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

START = """\
import copy, io

class Job:
    def __init__(self, decay=0.99):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
        self.ema = copy.deepcopy(self.net).requires_grad_(False)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.decay = decay

    @torch.no_grad()
    def update(self):
        for a, p in zip(self.ema.parameters(), self.net.parameters()):
            a.lerp_(p, 1 - self.decay)

    def fit(self):
        for _ in range(6):
            self.opt.zero_grad()
            self.net(torch.randn(8, 4)).square().mean().backward()
            self.opt.step()
            self.update()
        return self.ema(torch.randn(2, 4))

job, file = Job(), io.BytesIO()
job.fit()
torch.save({"net": job.net.state_dict(), "ema": job.ema.state_dict()}, file)
file.seek(0)
"""
RESUME = """\
job, kept = Job(), torch.load(file)
job.net.load_state_dict(kept["net"])  #!
job.fit()
"""
LOOP = """\
        for a, p in zip(self.ema.parameters(), self.net.parameters()):
            a.lerp_(p, 1 - self.decay)
"""
COPY = "copy.deepcopy(self.net).requires_grad_(False)\n"
LISTS = "        average, new = list(self.ema.parameters()), list(self.net.parameters())\n"
SHADOW = (
    START.replace(COPY, COPY + (
        "        self.shadow = {n: p.detach().clone() for n, p in self.net.named_parameters()}\n"))
    .replace(LOOP, (
        "        for n, p in self.net.named_parameters():\n"
        "            self.shadow[n].mul_(self.decay).add_(p.data, alpha=1 - self.decay)\n"))
    .replace("return self.ema(torch.randn(2, 4))", (
        "return torch.func.functional_call(self.net, self.shadow, torch.randn(2, 4))"))
)  # fmt: skip
MADE = START.replace(COPY, (
    "nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)).requires_grad_(False)\n"
    "        self.ema.load_state_dict(self.net.state_dict())\n"))  # fmt: skip
FOREACH = START.replace(LOOP, LISTS + (
    "        torch._foreach_lerp_(average, new, 1 - self.decay)\n"))  # fmt: skip
MEMORY = RESUME.replace("job, kept = Job(), torch.load(file)", (
    "kept = {'net': copy.deepcopy(job.net.state_dict())}\njob = Job()"))  # fmt: skip
WRONG = {
    "a checkpoint": START + RESUME,
    "a dict of tensors": SHADOW + RESUME,
    "a module of its own": MADE + RESUME,
    "all at once": FOREACH + RESUME,
    "a checkpoint in memory": START + MEMORY,
}
PLAIN = RESUME.replace("  #!", "")
FIRST = "        if not self.ready:\n" + LOOP.replace("        ", "            ").replace(
    "a.lerp_(p, 1 - self.decay)", "a.copy_(p)") + "            self.ready = True\n            return\n"  # fmt: skip
RIGHT = {
    "loaded too": START + PLAIN.replace("job.fit()", "job.ema.load_state_dict(kept['ema'])\njob.fit()"),
    "copied after the load": START + PLAIN.replace("job.fit()", (
        "job.ema.load_state_dict(job.net.state_dict())\njob.fit()")),
    "made after the load": START + PLAIN.replace("job.fit()", "job.ema = copy.deepcopy(job.net)\njob.fit()"),
    "copied first": START.replace("self.decay = decay", "self.decay, self.ready = decay, False").replace(
        LOOP, FIRST + LOOP) + PLAIN,
    "an average of few updates": START.replace("decay=0.99", "decay=0.2") + PLAIN,
    "many updates": START.replace("decay=0.99", "decay=0.6").replace("range(6)", "range(20)") + PLAIN,
    "a decay that rises": START.replace("1 - self.decay)", "1 - min(self.decay, self.opt.steps / 100))").replace(
        "self.opt.step()", "self.opt.step(); self.opt.steps = getattr(self.opt, 'steps', 0) + 1") + PLAIN,
    "a library's average": START.replace(COPY, (
        "torch.optim.swa_utils.AveragedModel(self.net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))\n"
    )).replace(LOOP, "        self.ema.update_parameters(self.net)\n") + PLAIN,
    "what is left of the first copy is taken out": START.replace(COPY, COPY + (
        "        self.first = {n: p.clone() for n, p in self.net.state_dict().items()}\n")) + PLAIN
    + "print({n: (p - 0.99**6 * job.first[n]) / (1 - 0.99**6) for n, p in job.ema.state_dict().items()})\n",
    "loaded to evaluate the last run": START + "net = Job().net\n"
    "net.load_state_dict(job.net.state_dict())\njob.fit()\n",
    "the first module again": START + "first = copy.deepcopy(job.net.state_dict())\njob.ema = copy.deepcopy(job.net)\n"
    "job.net.load_state_dict(first)\njob.fit()\n",
    "a round of an outer average": START + "for _ in range(2):\n    inner = Job()\n"
    "    inner.net.load_state_dict(job.ema.state_dict())\n    inner.ema = job.ema\n    inner.fit()\n",
}  # fmt: skip
WORDS = "is still the first copy"


@pytest.mark.parametrize("name", WRONG)
def test_averages_that_are_not_loaded_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.startswith("4 averages that ")
    assert "after 6 updates, 94 % of each" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_averages_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
