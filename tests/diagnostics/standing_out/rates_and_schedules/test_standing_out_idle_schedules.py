"""Checks the sentences about schedulers without an effect, and about optimizers that are made for one step each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MODEL = "model = nn.Linear(4, 1)\nf = lambda: model(torch.randn(8, 4)).square().mean()\n"
SGD = "opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n"
SCHEDULER = "from torch.optim import lr_scheduler as lrs\n"
STEP = "    opt.zero_grad()\n    f().backward()\n    opt.step()\n"
LOOP = "for step in range(6):\n" + STEP
BOTH = LOOP + "    schedule.step()\n"
DEEP = "    " + STEP.replace("\n    ", "\n        ")

WORDS = ("makes no step", "change the learning rate", "one line makes")

NEVER = {
    "forgotten": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.StepLR(opt, 2)  #!\n" + LOOP,
        "`StepLR` makes no step, and `SGD`, which it is made for, makes 6 after that",
    ),
    "on a plateau": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.ReduceLROnPlateau(opt)  #!\n" + LOOP,
        "`ReduceLROnPlateau` makes no step",
    ),
    "named without a call": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.CosineAnnealingLR(opt, 6)  #!\n" + LOOP + "    schedule.step\n",
        "`CosineAnnealingLR` makes no step",
    ),
    "in a method that nothing calls": (
        MODEL + SGD + SCHEDULER + "class Trainer:\n    def __init__(self):\n"
        "        self.decay = lrs.ExponentialLR(opt, 0.9)  #!\n    def end_epoch(self):\n        self.decay.step()\n"
        "t = Trainer()\n" + LOOP,
        "`ExponentialLR` makes no step",
    ),
    "in a class, the wrong one steps": (
        MODEL + SGD + SCHEDULER + "class Trainer:\n    def __init__(self):\n        self.warmup = lrs.LinearLR(opt)\n"
        "        self.decay = lrs.ExponentialLR(opt, 0.9)  #!\nt = Trainer()\n" + LOOP + "    t.warmup.step()\n",
        "`ExponentialLR` makes no step",
    ),
}  # fmt: skip
IDLE = {
    "a new optimizer": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.StepLR(opt, 2)\nopt = torch.optim.Adam(model.parameters())\n"
        + LOOP + "    schedule.step()  #!\n",
        "all 6 steps of `StepLR` change the learning rate of an `SGD` that makes no step: `Adam` steps its parameters",
    ),
    "in the middle": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.ExponentialLR(opt, 0.9)\nfor step in range(6):\n    if step == 2:\n"
        "        opt = torch.optim.SGD(model.parameters(), lr=0.05)\n" + STEP + "    schedule.step()  #!\n",
        "of an `SGD` that makes no step any more: another `SGD` steps its parameters",
    ),
    "by epochs, in functions": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.ReduceLROnPlateau(opt)\ndef make():\n"
        "    return torch.optim.AdamW(model.parameters())\ndef epoch(opt, n):\n    for step in range(n):\n" + DEEP
        + "    schedule.step(1.0)  #!\nopt = make()\nepoch(opt, 2)\nepoch(opt, 3)\nepoch(opt, 2)\n",
        "all 3 steps of `ReduceLROnPlateau` change the learning rate of an `SGD` that makes no step: `AdamW` steps its",
    ),
    "a loaded optimizer": (
        MODEL + SGD + SCHEDULER + "schedule = lrs.LambdaLR(opt, lambda i: 0.5 ** i)\nimport copy\n"
        "resumed = torch.optim.SGD(model.parameters(), lr=0.1)\nresumed.load_state_dict(opt.state_dict())\n"
        "opt = resumed\n" + LOOP + "    schedule.step()  #!\n",
        "all 6 steps of `LambdaLR` change the learning rate of an `SGD` that makes no step: another `SGD` steps its",
    ),
}  # fmt: skip
AGAIN = {
    "a scheduler in each step": (
        MODEL + SGD + SCHEDULER + "for step in range(6):\n    schedule = lrs.StepLR(opt, 3)  #!\n" + STEP
        + "    schedule.step()\n",
        "one line makes 6 `StepLR` for one `SGD`, and none makes more than one step: the learning rate stays the same",
    ),
    "a scheduler in each epoch": (
        MODEL + SGD + SCHEDULER + "def epoch():\n    schedule = lrs.MultiStepLR(opt, [5, 8])  #!\n"
        "    for step in range(2):\n"
        + DEEP + "    schedule.step()\nfor _ in range(4):\n    epoch()\n",
        "one line makes 4 `MultiStepLR` for one `SGD`",
    ),
    "an optimizer in each step": (
        MODEL + "for step in range(6):\n    opt = torch.optim.Adam(model.parameters())  #!\n" + STEP,
        "one line makes 6 `Adam` for the same parameters, and each makes one step",
    ),
    "an optimizer in a function": (
        MODEL + "def train_step():\n    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  #!\n" + STEP
        + "for _ in range(3):\n    train_step()\n",
        "one line makes 3 `SGD` for the same parameters, and each makes one step",
    ),
    "an optimizer in each epoch": (
        MODEL + "for epoch in range(5):\n    opt = torch.optim.Adam(model.parameters())  #!\n"
        "    for step in range(2):\n" + DEEP,
        "one line makes 5 `Adam` for the same parameters, and each makes at most 2 steps",
    ),
}  # fmt: skip
WRONG = {f"{kind}: {name}": case for kind, cases in (("never", NEVER), ("idle", IDLE), ("again", AGAIN))
         for name, case in cases.items()}  # fmt: skip

RIGHT = {
    "a usual one": MODEL + SGD + SCHEDULER + "schedule = lrs.StepLR(opt, 2)\n" + BOTH,
    "one after another": MODEL + SGD + SCHEDULER
    + "schedule = lrs.SequentialLR(opt, [lrs.LinearLR(opt), lrs.ExponentialLR(opt, 0.9)], [20])\n" + BOTH,
    "a chain": MODEL + SGD + SCHEDULER
    + "schedule = lrs.ChainedScheduler([lrs.LinearLR(opt), lrs.ExponentialLR(opt, 0.9)])\n" + BOTH,
    "a plateau": MODEL + SGD + SCHEDULER + "schedule = lrs.ReduceLROnPlateau(opt)\n" + LOOP
    + "    schedule.step(1.0)\n",
    "restarts": MODEL + SGD + SCHEDULER + "schedule = lrs.CosineAnnealingWarmRestarts(opt, 3)\n" + BOTH,
    "an own step": MODEL + SGD + SCHEDULER + "class Own(lrs.LRScheduler):\n    def step(self, epoch=None):\n"
    "        for group in self.optimizer.param_groups:\n            group['lr'] *= 0.9\n    def get_lr(self):\n"
    "        return [0.1]\nschedule = Own(opt)\n" + BOTH,
    "both made anew": MODEL + SGD + SCHEDULER + "schedule = lrs.StepLR(opt, 2)\n" + BOTH
    + "opt = torch.optim.Adam(model.parameters())\nschedule = lrs.StepLR(opt, 2)\n" + BOTH,
    "two networks": MODEL + SGD + SCHEDULER + "other = nn.Linear(4, 1)\n"
    "second = torch.optim.SGD(other.parameters(), lr=0.1)\ntwo = lrs.StepLR(second, 2)\nschedule = lrs.StepLR(opt, 2)\n"
    "for step in range(6):\n    second.zero_grad()\n    other(torch.randn(8, 4)).square().mean().backward()\n"
    "    if step < 3:\n        second.step()\n" + STEP + "    schedule.step()\n    two.step()\n",
    "once for all": MODEL + SGD + SCHEDULER + "schedule = lrs.StepLR(opt, 1)\n" + LOOP + "schedule.step()\n",
    "an optimizer without memory in each step": MODEL
    + "for step in range(6):\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n" + STEP,
    "a chain of new ones that moves the rate": MODEL + SGD + SCHEDULER
    + "for step in range(6):\n    schedule = lrs.ExponentialLR(opt, 0.9)\n" + STEP + "    schedule.step()\n",
    "an optimizer for each task": MODEL + "for task in range(3):\n"
    "    opt = torch.optim.Adam(model.parameters())\n    for step in range(2):\n" + DEEP,
    "an optimizer for each of many tasks": MODEL + "first = [p.clone() for p in model.parameters()]\n"
    "for task in range(6):\n    for p, q in zip(model.parameters(), first):\n        p.data.copy_(q)\n"
    "    opt = torch.optim.Adam(model.parameters())\n    for step in range(2):\n" + DEEP,
    "an optimizer in each epoch that goes on": MODEL + "kept = None\nfor epoch in range(6):\n"
    "    opt = torch.optim.Adam(model.parameters())\n    if kept is not None:\n        opt.load_state_dict(kept)\n"
    "    for step in range(2):\n" + DEEP + "    kept = opt.state_dict()\n",
    "an optimizer for each of many tasks that go on": MODEL + "for task in range(6):\n    x = torch.randn(8, 4)\n"
    "    opt = torch.optim.Adam(model.parameters())\n    for step in range(2):\n" + DEEP,
    "averaged weights in a short run": MODEL + SGD + "from torch.optim.swa_utils import AveragedModel, SWALR\n"
    "average, schedule = AveragedModel(model), SWALR(opt, 0.05)\nfor epoch in range(3):\n    for step in range(2):\n"
    + DEEP + "    if epoch > 160:\n        average.update_parameters(model)\n        schedule.step()\n",
    "a decay every 1000 steps": MODEL + SGD + SCHEDULER + "class Trainer:\n    def __init__(self):\n"
    "        self.decay, self.n = lrs.ExponentialLR(opt, 0.9), 0\n    def after(self):\n        self.n += 1\n"
    "        if self.n % 1000 == 0:\n            self.decay.step()\nt = Trainer()\n" + LOOP + "    t.after()\n",
    "a scheduler that a function makes, and a run that ends early": MODEL + SGD + SCHEDULER
    + "def make():\n    return lrs.StepLR(opt, 2)\nschedule = make()\ndef fit(most):\n    n = 0\n"
    "    for epoch in range(3):\n        for step in range(4):\n            f().backward()\n            opt.step()\n"
    "            n += 1\n            if n == most:\n                return\n"
    "        schedule.step()\nfit(3)\n",
    "averaged weights": MODEL + SGD + "from torch.optim.swa_utils import AveragedModel, SWALR\n"
    "average, schedule = AveragedModel(model), SWALR(opt, 0.05)\n" + BOTH + "    average.update_parameters(model)\n",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_schedules_without_effect(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_schedules(case: str, tmp_path: Path) -> None:
    texts = [each.text for each in sentences(tmp_path, RIGHT[case])]
    assert not [text for text in texts if any(words in text for words in WORDS)]


def test_the_scheduler_that_keeps_the_rate_at_zero_is_labelled(tmp_path: Path) -> None:
    body = """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: step // 50)  #!
        for i in range(6):
            opt.zero_grad(); model(torch.randn(8, 4)).square().mean().backward(); opt.step()
            schedule.step()
    """
    (found,) = (each for each in sentences(tmp_path, body) if "learning rate" in each.text)
    assert "is 0 at each of its 6 steps" in found.text
    assert [label.span.line for label in found.labels] == [marked(body) - 1, marked(body)]
