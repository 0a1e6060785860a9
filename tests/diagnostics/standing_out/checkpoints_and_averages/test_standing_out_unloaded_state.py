"""Checks the sentence about the state of an optimizer that a checkpoint keeps and that nothing loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
import copy
def build():
    net = nn.Linear(4, 1)
    return net, OPTIMIZER
def train(net, opt):
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
net, opt = build()
train(net, opt)
checkpoint = copy.deepcopy({"net": net.state_dict(), "opt": opt.state_dict()})  #!
net, opt = build()
net.load_state_dict(checkpoint["net"])
LOAD
train(net, opt)
"""
ADAM = "torch.optim.Adam(net.parameters(), lr=0.01)"
ALONE = 'net.load_state_dict(checkpoint["net"])'
WORDS = "begins without averages of earlier gradients"


def body(optimizer: str = ADAM, load: str = "pass") -> str:
    return BODY.replace("OPTIMIZER", optimizer).replace("LOAD", load)


HEAD_OF_ITS_OWN = (
    body()
    .replace("net = nn.Linear(4, 1)", "net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))")
    .replace(ALONE, 'net[0].load_state_dict({"weight": checkpoint["net"]["0.weight"], "bias": torch.zeros(4)})')
)
EACH_FOLD = """\
import copy
net = nn.Linear(4, 1)
first = copy.deepcopy(net.state_dict())
for fold in range(3):
    net.load_state_dict(first)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 2)
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        scheduler.step()
    kept = copy.deepcopy([net.state_dict(), opt.state_dict(), scheduler.state_dict()])
"""
BEST_OF_EACH_STAGE = """\
import copy
net, best, kept, shown = nn.Linear(4, 1), None, {}, {}
for rate in (0.01, 0.003, 0.001):
    if best is not None:
        net.load_state_dict(best)
    opt = torch.optim.Adam(net.parameters(), lr=rate)
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        best = copy.deepcopy(net.state_dict())
    print("rate", opt.state_dict()["param_groups"][0]["lr"])
    state = opt.state_dict()
    shown["rate"] = state["param_groups"][0]["lr"]
"""


def test_a_state_that_is_not_loaded_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, body()) if WORDS in each.text)
    assert found.labels[0].span.line == marked(body())


@pytest.mark.parametrize(
    "text",
    [
        body(load='opt.load_state_dict(checkpoint["opt"])'),
        body().replace(
            ALONE, 'for key, part in (("net", net), ("opt", opt)):\n    part.load_state_dict(checkpoint[key])'
        ),
        body().replace(ALONE, "for key in checkpoint:\n    globals()[key].load_state_dict(checkpoint[key])"),
        body()
        .replace(ALONE, "for key in checkpoint:\n    getattr(job, key).load_state_dict(checkpoint[key])")
        .replace("LOAD", "")
        .replace("net, opt = build()\nfor", "net, opt = build()\njob = Job(net, opt)\nfor")
        .replace("import copy\n", "import copy, collections\nJob = collections.namedtuple('Job', 'net opt')\n"),
        body().replace(
            ALONE, 'def load(part, key):\n    part.load_state_dict(checkpoint[key])\nload(net, "net")\nload(opt, "opt")'
        ),
        body(load='for n, p in enumerate(net.parameters()):\n    opt.state[p] = checkpoint["opt"]["state"][n]'),
        body(load='opt.state.update(zip(net.parameters(), checkpoint["opt"]["state"].values()))'),
        body("torch.optim.SGD(net.parameters(), lr=0.01)"),
        body().replace('"opt": opt.state_dict()', '"low": 0'),
        HEAD_OF_ITS_OWN,
        EACH_FOLD,
        BEST_OF_EACH_STAGE,
        BEST_OF_EACH_STAGE.replace("lr=rate", "lr=0.01"),
        BEST_OF_EACH_STAGE + "    kept[rate] = opt.state_dict()\n",
        body().replace("LOAD\ntrain(net, opt)", "LOAD").replace("pass\ntrain(net, opt)", "net(torch.ones(1, 4))"),
    ],
    ids=[
        "loaded",
        "in a loop",
        "by its name",
        "an attribute",
        "a function",
        "averages that a line writes",
        "averages of a dict",
        "no averages",
        "not kept",
        "a new head",
        "each fold begins with the same weights",
        "a state that is shown",
        "a state that is shown, with one rate",
        "a rate of each stage",
        "no training afterwards",
    ],
)
def test_other_checkpoints_are_left_alone(tmp_path: Path, text: str) -> None:
    assert [each.text for each in sentences(tmp_path, text) if WORDS in each.text] == []


SCHEDULE = """\
import copy
def build():
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    return net, opt, torch.optim.lr_scheduler.StepLR(opt, 2)
def train(net, opt, scheduler):
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        scheduler.step()
net, opt, scheduler = build()
train(net, opt, scheduler)
checkpoint = copy.deepcopy({"net": net.state_dict(), "scheduler": scheduler.state_dict()})  #!
net, opt, scheduler = build()
net.load_state_dict(checkpoint["net"])
LOAD
train(net, opt, scheduler)
"""
FINE_TUNED = (
    SCHEDULE.replace("LOAD", "")
    .replace("def build()", "def build(rate=0.1)")
    .replace("lr=0.1", "lr=rate")
    .replace("net, opt, scheduler = build()\nnet.load", "net, opt, scheduler = build(0.05)\nnet.load")
)
ANEW = "begins anew, with a learning rate of 0.1 after 0.01"


def test_a_schedule_that_a_loop_over_names_leaves_is_named(tmp_path: Path) -> None:
    loop = """\
other_opt = torch.optim.SGD([torch.zeros(1)], lr=0.1)
checkpoint["other_opt"] = other_opt.state_dict()
checkpoint["decay"] = checkpoint["scheduler"]
job = types.SimpleNamespace(net=net, other_opt=other_opt, scheduler=scheduler, decay=scheduler)
for key in NAMES:
    getattr(job, key).load_state_dict(checkpoint[key])"""
    text = SCHEDULE.replace("import copy\n", "import copy, types\n").replace("LOAD", "").replace(ALONE, loop)
    named = text.replace("NAMES", '("net", "other_opt")')
    (found,) = (each for each in sentences(tmp_path, named) if ANEW in each.text)
    assert found.labels[0].span.line == marked(named)
    both = '("net", "other_opt", "scheduler")', '("net", "other_opt", "decay")'
    for names in (*both, "checkpoint", '("net", "other_opt") + ("scheduler",)'):
        said = [each.text for each in sentences(tmp_path, text.replace("NAMES", names))]
        assert [each for each in said if ANEW in each] == []


def test_a_schedule_that_begins_anew_is_named(tmp_path: Path) -> None:
    text = SCHEDULE.replace("LOAD", "")
    (found,) = (each for each in sentences(tmp_path, text) if ANEW in each.text)
    assert found.labels[0].span.line == marked(text)


@pytest.mark.parametrize(
    "text",
    [
        SCHEDULE.replace("LOAD", 'scheduler.load_state_dict(checkpoint["scheduler"])'),
        SCHEDULE.replace("LOAD", "").replace('"scheduler": scheduler.state_dict()', '"low": 0'),
        SCHEDULE.replace("LOAD", "").replace('net.load_state_dict(checkpoint["net"])', ""),
        SCHEDULE.replace("LOAD", "").replace('net.load_state_dict(checkpoint["net"])', "")
        + 'net.load_state_dict(checkpoint["net"])\n',
        FINE_TUNED,
        EACH_FOLD,
        EACH_FOLD.replace("    net.load_state_dict(first)\n", "    if fold: net.load_state_dict(first)\n"),
    ],
    ids=["loaded", "not kept", "another training", "loaded at the end", "fine-tuned", "each fold", "later folds"],
)
def test_other_schedules_are_left_alone(tmp_path: Path, text: str) -> None:
    assert [each.text for each in sentences(tmp_path, text) if "begins anew" in each.text] == []


def test_a_warm_up_that_begins_anew_after_a_fall_is_named(tmp_path: Path) -> None:
    rule = "LambdaLR(opt, lambda n: (0.2, 1, 0.8, 0.6, 0.4)[min(n, 4)])"
    text = SCHEDULE.replace("StepLR(opt, 2)", rule).replace("LOAD", "")
    (found,) = (each for each in sentences(tmp_path, text) if "begins anew, with a learning rate of 0.02" in each.text)
    assert found.labels[0].span.line == marked(text)


AGAIN = """\
def optimizer_for(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
def train(net, opt):
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
net = nn.Linear(4, 1)
opt = optimizer_for(net)
train(net, opt)
other = nn.Linear(4, 1)
opt2 = optimizer_for(other)
other.load_state_dict(net.state_dict())
opt2.load_state_dict(opt.state_dict())
REST
"""
IN_VAIN = "into an `SGD` that makes no step"


def test_a_loaded_optimizer_that_is_replaced_is_named(tmp_path: Path) -> None:
    text = AGAIN.replace(
        "REST", "opt2 = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)  #!\ntrain(other, opt2)"
    )
    (found,) = (each for each in sentences(tmp_path, text) if IN_VAIN in each.text)
    assert found.labels[0].span.line == marked(text)


RESUMED = """\
def load(checkpoint):
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.load_state_dict(checkpoint["net"])
    opt.load_state_dict(checkpoint["opt"])
    return net, opt
TARGETS = load({"net": net.state_dict(), "opt": opt.state_dict()})
NAME = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
train(other, NAME)"""


def _resumed(targets: str, name: str) -> str:
    rest = RESUMED.replace("TARGETS", targets).replace("NAME", name)
    return AGAIN.replace("opt2.load_state_dict(opt.state_dict())\nREST", rest)


def test_a_loaded_optimizer_that_a_function_returns_is_named(tmp_path: Path) -> None:
    assert [each for each in sentences(tmp_path, _resumed("other, opt3", "opt3")) if IN_VAIN in each.text]


@pytest.mark.parametrize("targets", ["other, _", "other, opt"], ids=["not kept", "another name"])
def test_a_new_optimizer_after_one_that_is_not_kept_is_left_alone(tmp_path: Path, targets: str) -> None:
    assert [each for each in sentences(tmp_path, _resumed(targets, "fresh")) if IN_VAIN in each.text] == []


@pytest.mark.parametrize(
    "rest",
    [
        "train(other, opt2)",
        "train(other, opt2)\nopt2 = optimizer_for(other)\ntrain(other, opt2)",
        "opt2 = torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9)\ntrain(other, opt2)",
        "opt2 = optimizer_for(net)\ntrain(net, opt2)",
    ],
    ids=["steps", "a second stage", "another rate", "other parameters"],
)
def test_other_loaded_optimizers_are_left_alone(tmp_path: Path, rest: str) -> None:
    assert [e.text for e in sentences(tmp_path, AGAIN.replace("REST", rest)) if "makes no step:" in e.text] == []


JOBS = """\
import copy
class Job:
    def __init__(self, checkpoint=None):
        self.net = nn.Linear(4, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda n: 1 / (1 + n))  #!
        if checkpoint is not None:
            self.net.load_state_dict(checkpoint["net"])
            self.opt.load_state_dict(checkpoint["opt"])
    def train(self):
        for _ in range(4):
            self.opt.zero_grad()
            self.net(torch.randn(8, 4)).square().mean().backward()
            self.opt.step()
            self.schedule.step()
        return copy.deepcopy({"net": self.net.state_dict(), "opt": self.opt.state_dict()})
Job(Job().train()).train()
"""
LONG = (
    JOBS.replace("range(4)", "range(40 if checkpoint else 70)")
    .replace("def train(self)", ("def train(self, checkpoint=None)"))
    .replace("Job(Job().train()).train()", "Job(Job().train()).train(True)")
)
NO_LINE = "no line keeps the `state_dict()` of a scheduler"


def test_a_schedule_of_a_loaded_optimizer_that_begins_anew_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, JOBS) if NO_LINE in each.text)
    assert "a `LambdaLR` begins anew for an optimizer whose state is loaded, after 4 steps" in found.text
    assert found.labels[0].span.line == marked(JOBS)


def test_a_long_schedule_that_begins_anew_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, LONG) if NO_LINE in each.text)
    assert "after 70 steps" in found.text


@pytest.mark.parametrize(
    "text",
    [
        LONG.replace("1 / (1 + n))", "1 / (1 + n + 70 * (checkpoint is not None)))"),
        JOBS.replace('"opt": self.opt', '"schedule": self.schedule.state_dict(), "opt": self.opt'),
        JOBS.replace('            self.opt.load_state_dict(checkpoint["opt"])\n', ""),
        JOBS.replace("1 / (1 + n))", "1 / (1 + n), last_epoch=-1)"),
        JOBS.replace("Job(Job().train()).train()", "Job().train()"),
        JOBS.replace("LambdaLR(self.opt, lambda n: 1 / (1 + n))", "ExponentialLR(self.opt, 0.9)"),
        JOBS.replace("1 / (1 + n))", "1 / (1 + n + 4 * (checkpoint is not None)))"),
    ],
    ids=[
        "a long one that goes on",
        "kept",
        "a new optimizer",
        "an epoch",
        "one job",
        "a rate that goes on",
        "a function that goes on",
    ],
)
def test_other_jobs_are_left_alone(tmp_path: Path, text: str) -> None:
    assert [each.text for each in sentences(tmp_path, text) if NO_LINE in each.text] == []


KEPT = JOBS.replace('"opt": self.opt', '"schedule": self.schedule.state_dict(), "opt": self.opt')
NOT_LOADED = "a line keeps the `state_dict()` of a scheduler, and none loads it"


def test_a_kept_schedule_of_a_loaded_optimizer_that_begins_anew_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, KEPT) if NOT_LOADED in each.text)
    assert "begins anew, with a learning rate of 0.05 after 0.025" in found.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Job(Job().train()).train()", "Job().train()"),
        ("1 / (1 + n))", "1 / (1 + n + 4 * (checkpoint is not None)))"),
        ("    def train", '            self.schedule.load_state_dict(checkpoint["schedule"])\n    def train'),
    ],
    ids=["no other job", "a function that goes on", "loaded"],
)
def test_a_kept_schedule_that_goes_on_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    assert old in KEPT
    text = KEPT.replace(old, new)
    assert [each.text for each in sentences(tmp_path, text) if NOT_LOADED in each.text] == []
