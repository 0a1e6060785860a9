"""Checks the sentences about warm-ups that divide whole numbers, and about groups without decay that hold nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STEPS = """\
for step in range(20):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
    schedule.step()
"""
START = "net = nn.Linear(4, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
LAMBDA = START + "schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: min(1, n // 5))  #!\n" + STEPS
FUNCTION = """\
def factor(n, warmup=5):
    return max(0.0, 1 - n / 50) * (min(n, warmup) // warmup)  #!
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=factor)
"""
BY_HAND = """\
import types
def set_rate(step):
    for group in opt.param_groups:
        group["lr"] = 0.1 * min(1, step // 5)  #!
schedule = types.SimpleNamespace(step=lambda: None)
"""
HELD = """\
import types
class Warmup:
    def __init__(self):
        self.n = 0
    def step(self):
        share = min(self.n, 5) // 5  #!
        for group in opt.param_groups:
            group["lr"] = 0.1 * share
        self.n += 1
schedule = Warmup()
schedule.step()
"""
BY_STEP = START + STEPS.replace("schedule.step()", "pass").replace(
    "    opt.zero_grad()",
    '    for group in opt.param_groups:\n        group["lr"] = rate(step)\n    opt.zero_grad()',
    1,
)
RETURNED = """\
def rate(step):
    if step < 5:
        return 0.1 * (step // 5)  #!
    if step > 50:
        return 0.0
    return 0.1 - 0.001 * (step - 5)
"""
CHOSEN = """\
def rate(step, start=0.0):
    if step >= 5:
        share = 1.0
    else:
        share = int(step / 5)  #!
    return start + 0.1 * share if start < 1 else start
"""
SCHEDULER = """\
class Rates(torch.optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer):
        super().__init__(optimizer)
    def get_lr(self):
        if self.last_epoch < 5:
            return [rate * (self.last_epoch // 5) for rate in self.base_lrs]  #!
        return self.base_lrs
schedule = Rates(opt)
"""
WHOLE = "is a whole number, and 0 until then"


@pytest.mark.parametrize(
    "body",
    [
        LAMBDA,
        START + FUNCTION + STEPS,
        START + HELD + STEPS,
        START + BY_HAND + STEPS.replace("    opt.step", "    set_rate(step)\n    opt.step"),
        RETURNED + BY_STEP,
        CHOSEN + BY_STEP,
        START + SCHEDULER + STEPS,
    ],
    ids=["lambda", "function", "a class", "by hand", "returned", "chosen", "a scheduler"],
)
def test_a_warm_up_by_whole_numbers_is_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WHOLE in each.text)
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize(
    "factor",
    [
        "max(1, n // 5) * min(1, 3 // 2) * float(n > 4)",
        "min(1, n / 5)",
        "0.5 ** (n // 5)",
        "0.0 if n < 5 else 0.5 ** (n // 10)",
        "1 - n // 5 / 10",
    ],
)
def test_other_factors_are_left_alone(tmp_path: Path, factor: str) -> None:
    body = LAMBDA.replace("min(1, n // 5)", factor)
    assert [each.text for each in sentences(tmp_path, body) if WHOLE in each.text] == []


FROZEN = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
groups = [{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters()}]
opt = torch.optim.SGD(groups, lr=0.1)
def train(batch=32):
    log_every = max(1, batch // 32)
    for epoch in range(10):
        opt.param_groups[0]["lr"] = 0.0 if epoch < 4 else 0.01
        opt.zero_grad()
        head(body(torch.randn(batch, 4))).square().mean().backward()
        opt.step()
        if epoch % log_every:
            print(epoch)
train()
"""
BY_BATCH = FROZEN.replace('        opt.param_groups[0]["lr"] = 0.0 if epoch < 4 else 0.01', (
    '        if epoch >= 4:\n            opt.param_groups[0]["lr"] = 0.01 * (batch // 16)'))  # fmt: skip
DECAY = FROZEN.replace("0.0 if epoch < 4 else 0.01", "0.01 * 0.5 ** min(3, epoch // 4) * min(1, epoch / 9) ** 9")
LATER = """\
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([{"params": body.parameters()}, {"params": head.parameters()}], lr=0.1)
import types
schedule = types.SimpleNamespace(step=lambda: None)
""" + STEPS.replace("net(torch.randn(8, 4))", "head(body(torch.randn(8, 4)))").replace(
    "    opt.step", '    opt.param_groups[0]["lr"] = 0.1 * min(1, step // 5)\n    opt.step')  # fmt: skip


TWO = (
    LAMBDA.replace(
        "nn.Linear(4, 1)", "nn.Linear(4, 1)\nhead = nn.Linear(1, 1)\nfirst = torch.optim.SGD(head.parameters(), 1.0)"
    )
    .replace("net(torch.randn(8, 4))", "head(net(torch.randn(8, 4)))")
    .replace("    opt.step()", "    opt.step()\n    first.step()\n    first.zero_grad()")
)


@pytest.mark.parametrize(
    "body", [FROZEN, BY_BATCH, DECAY, LATER, TWO], ids=["frozen", "batch", "decay", "later", "two"]
)
def test_rates_that_other_lines_set_to_zero_are_left_alone(tmp_path: Path, body: str) -> None:
    assert [each.text for each in sentences(tmp_path, body) if WHOLE in each.text] == []


DELAYED = RETURNED.replace("0.1 * (step // 5)", "0.0").replace("0.1 - 0.001 * (step - 5)", "0.1 * 0.5 ** (step // 10)")
BY_KIND = """\
def rate(step, kind="delayed"):
    if kind == "whole":
        return 0.1 * (step // 5)
    return 0.1 * (step >= 5)
"""


@pytest.mark.parametrize(
    "body", [DELAYED, BY_KIND, RETURNED.replace("step // 5", "step / 5")], ids=["0", "kind", "share"]
)
def test_functions_that_begin_with_zero_for_another_reason_are_left_alone(tmp_path: Path, body: str) -> None:
    assert [each.text for each in sentences(tmp_path, body + BY_STEP) if WHOLE in each.text] == []


GROUPS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.out = nn.LayerNorm(4), nn.Linear(4, 1)
    def forward(self, x):
        return self.out(self.ln_1(x))
net = Net()
decay, other = [], []
for name, p in net.named_parameters():
    if "norm" in name:  #!
        other.append(p)
    else:
        decay.append(p)
opt = torch.optim.AdamW([{"params": decay}, {"params": other, "weight_decay": 0.0}], lr=0.01, weight_decay=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
EMPTY = "with a weight decay of 0 holds no parameters"


OWN = GROUPS.replace(
    "class Net",
    """class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
    def forward(self, x):
        return x * self.weight
class Net""",
).replace("nn.LayerNorm(4)", "Scale()")
SCALED = OWN.replace("x * self.weight", "x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * self.weight")
FOUND = GROUPS[GROUPS.index("decay, other") : GROUPS.index("opt =")]
TYPES = GROUPS.replace("nn.LayerNorm(4)", "nn.GroupNorm(2, 4)").replace(
    FOUND,
    """\
other = set()
for part in net.modules():
    if isinstance(part, nn.LayerNorm):
        other.update(part.parameters())
decay, other = [p for p in net.parameters() if p not in other], list(other)
""",
)
HELPER = GROUPS.replace(
    FOUND,
    """\
import re
SPARED = re.compile("norm|gamma")
def is_spared(name):
    return SPARED.search(name) is not None
groups = {True: [], False: []}
for name, p in net.named_parameters():
    groups[is_spared(name)].append(p)
decay, other = groups[False], groups[True]
""",
)
SET_UP = GROUPS.replace(
    FOUND,
    """\
for part in net.modules():
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
decay, other = list(net.parameters()), []
""",
)
OWN_NORM, OTHER_CASE = OWN.replace("Scale", "RMSNorm"), OWN.replace("ln_1", "prenorm").replace('"norm"', '"Norm"')


@pytest.mark.parametrize("body", [OWN_NORM, OTHER_CASE, SCALED], ids=["a norm of its own", "another case", "a root"])
def test_norms_of_the_program_are_named(tmp_path: Path, body: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if EMPTY in each.text)
    assert "2 parameters of at most one dimension have one of 0.1" in found.text


@pytest.mark.parametrize("body", [TYPES, HELPER], ids=["types", "a helper"])
def test_a_group_of_which_other_code_finds_nothing_is_named(tmp_path: Path, body: str) -> None:
    assert len([each for each in sentences(tmp_path, body) if EMPTY in each.text]) == 1


def test_a_group_without_decay_that_holds_nothing_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, GROUPS) if EMPTY in each.text)
    assert "3 parameters of at most one dimension have one of 0.1" in found.text
    assert marked(GROUPS) in [each.span.line for each in found.labels]


@pytest.mark.parametrize(
    "body",
    [
        GROUPS.replace('"norm"', '"ln_"'),
        GROUPS.replace("nn.LayerNorm(4)", "nn.Linear(4, 4)"),
        GROUPS.replace("nn.LayerNorm(4)", "nn.Linear(4, 4, bias=False)").replace(
            "nn.Linear(4, 1)", ("nn.Linear(4, 1, bias=False)")
        ),
        GROUPS.replace('"weight_decay": 0.0}', '"weight_decay": 0.0}').replace('"norm" in name', "p.ndim < 2"),
        GROUPS.replace('"norm"', '"bias"')
        .replace("nn.Linear(4, 1)", "nn.Linear(4, 1, bias=False)")
        .replace("nn.LayerNorm(4)", "nn.LayerNorm(4, bias=False)"),
        GROUPS.replace('"norm" in name', '"pos_embed" in name or "cls_token" in name'),
        OWN,
        SET_UP,
        GROUPS.replace("nn.LayerNorm(4)", "nn.Linear(4, 4)")
        .replace("    def forward", "        self.logit_scale = nn.Parameter(torch.ones([]))\n    def forward")
        .replace("self.ln_1(x)", "self.logit_scale * self.ln_1(x)"),
    ],
    ids=[
        "a name that fits",
        "biases alone",
        "no vectors",
        "by dimensions",
        "no biases",
        "other words",
        "a scale",
        "initial values",
        "a number",
    ],
)
def test_other_groups_are_left_alone(tmp_path: Path, body: str) -> None:
    assert [each.text for each in sentences(tmp_path, body) if EMPTY in each.text] == []
