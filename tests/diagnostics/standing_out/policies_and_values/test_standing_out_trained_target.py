"""Checks the sentences about a loss whose target has a graph, or is computed from a copy that stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
from torch.nn import functional as F
q = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(q.parameters(), lr=0.01)
for _ in range(3):
    s, after, reward, done = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16), torch.rand(16).round()
    value = q(s)[:, 0]
TARGET
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "the target of a loss": """\
    best = q(after).max(1).values  #!
    loss = F.smooth_l1_loss(value, reward + 0.9 * (1 - done) * best)
    """,
    "the target first": """\
    best = q(after).max(1).values  #!
    loss = F.mse_loss(reward + 0.9 * best, value)
    """,
    "a squared difference": """\
    best = q(after).max(1).values  #!
    error = reward + 0.9 * best - value
    loss = error.pow(2).mean()
    """,
    "a difference times itself": """\
    best = q(after).max(1).values  #!
    error = value.sub(0.9 * best.add(reward))
    loss = (error * error).mean()
    """,
}
RIGHT = {
    "a target without a graph": """\
    loss = F.mse_loss(value, reward + 0.9 * q(after).max(1).values.detach())
    """,
    "two views that are to agree": """\
    loss = F.mse_loss(value, q(s + 0.1 * after)[:, 0])
    """,
    "a step that is learned": """\
    loss = F.mse_loss(s[:, 0] + 0.1 * value, after[:, 0])
    """,
    "a difference of values": """\
    loss = (reward + value - q(after)[:, 0]).square().mean()
    """,
    "an equation with derivatives": """\
    x = s.clone().requires_grad_()
    u = q(x)[:, 0]
    slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    loss = (reward + 0.5 * slope[:, 1] - slope[:, 0]).square().mean()
    """,
    "an equation of a value and its derivative": """\
    x = s.clone().requires_grad_()
    u = q(x)[:, 0]
    slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    loss = F.mse_loss(slope[:, 0], reward + 0.5 * u)
    """,
    "another model": """\
    if _ == 0:
        other = nn.Linear(4, 1)
        opt.add_param_group({"params": other.parameters()})
    loss = F.mse_loss(value, reward + 0.9 * other(after)[:, 0])
    """,
}
STATES = """\
from torch.nn import functional as F
net, states = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Parameter(torch.zeros(20, 1))
opt = torch.optim.SGD([*net.parameters(), states], lr=0.01)
for _ in range(3):
    t, u = torch.rand(20, 1), torch.rand(20, 1)
    x = net(t)
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
print("done")
"""
EQUATIONS = {
    "a step of an equation": "F.mse_loss(net(t + 0.05), 0.9 * x + 0.05 * torch.sin(t))",
    "states of a linear system": "F.mse_loss(x[1:], 0.95 * x[:-1] + u[1:]) + F.mse_loss(x, u)",
    "states that are parameters": "(states[1:] - (0.95 * states[:-1] + u[1:])).square().sum()",
    "a functional equation": "F.mse_loss(net(2 * t), 2 * x + t ** 2)",
    "a Bellman equation of an economy": "(x - (torch.log(t) + 0.95 * net(t ** 0.36))).square().mean()",
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_that_train_both_sides_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, STATES.replace("LOSS", EQUATIONS[name]))
    assert [each.text for each in found if WORDS in each.text] == []


WORDS = "gradients through both terms of its difference"


def body(name: str) -> str:
    return BODY.replace("TARGET\n", {**WRONG, **RIGHT}[name].rstrip(" "))


@pytest.mark.parametrize("name", WRONG)
def test_a_target_with_a_graph_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body(name)) if WORDS in each.text)
    assert "gives `q[0].weight`, `q[0].bias`, `q[2].weight` and 1 more" in found.text
    assert found.labels[0].span.line == marked(body(name))


@pytest.mark.parametrize("name", RIGHT)
def test_other_losses_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, body(name)) if WORDS in each.text] == []


COPY = """\
import copy
from torch.nn import functional as F
q = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
target = copy.deepcopy(q)  #!
opt = torch.optim.SGD(q.parameters(), lr=0.01)
for step in range(1, 26):
    s, after, reward = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    with torch.no_grad():
        best = reward + 0.9 * target(after).max(1).values
    loss = F.smooth_l1_loss(q(s)[:, 0], best)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
AT_TIMES = (
    COPY
    + """\
    if step % 1000 == 0:
        target.load_state_dict(q.state_dict())
"""
)
LOADED = COPY.replace("copy.deepcopy(q)  #!", "nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))  #!")
VALUES = COPY.replace("copy.deepcopy(q)", "{k: v.detach().clone() for k, v in q.state_dict().items()}").replace(
    "target(after)", "torch.func.functional_call(q, target, (after,))")  # fmt: skip
SOFT_UPDATE = """\
def soft_update(target, source):
    for old, new in zip(target.parameters(), source.parameters()):
        old.data.copy_(0.99 * old.data + 0.01 * new.data)
"""
ROUNDS = """\
import copy
from torch.nn import functional as F
def fitted(q):
    old = copy.deepcopy(q).requires_grad_(False)
    opt = torch.optim.Adam(q.parameters(), 1e-2)
    for _ in range(25):
        s, after, reward = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
        y = reward + 0.9 * old(after).max(1).values
        loss = F.mse_loss(q(s)[:, 0], y)
        opt.zero_grad()
        loss.backward()
        opt.step()
q = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
for _ in range(1):
    fitted(q)
"""
FIXED = {
    "a function that nothing calls": SOFT_UPDATE + COPY,
    "a line that loads the other way": COPY
    + "    if step % 20 == 0:\n        q.load_state_dict(target.state_dict())\n",
    "a dict of values": VALUES,
    "a list of values": VALUES.replace(
        "{k: v.detach().clone() for k, v in q.state_dict().items()}", "[p.data.clone() for p in q.parameters()]"
    ).replace(
        "torch.func.functional_call(q, target, (after,))",
        ("F.linear(F.linear(after, *target[:2]).tanh(), *target[2:])"),
    ),
    "a copy": COPY,
    "loaded before": LOADED.replace("opt =", "target.load_state_dict(q.state_dict())\nopt ="),
    "a squared difference": COPY.replace("F.smooth_l1_loss(q(s)[:, 0], best)", "(q(s)[:, 0] - best).square().mean()"),
}
MOVES = {
    "moved after more steps": AT_TIMES,
    "moved by a function after more steps": AT_TIMES.replace("q = nn", SOFT_UPDATE + "q = nn").replace(
        "target.load_state_dict(q.state_dict())", "soft_update(target, q)"
    ),
    "one round of fitted Q iteration": ROUNDS,
    "one round of several": COPY.replace("target = copy.deepcopy(q)  #!\n", "").replace(
        "for step in range(1, 26):\n",
        "for step in range(1, 26):\n    if step == 1:\n        target = copy.deepcopy(q)\n",
    ),
    "values that are moved": VALUES + "    for k, v in q.state_dict().items():\n        target[k].lerp_(v, 0.05)\n",
    "values that are made again": VALUES
    + ("    if step % 10 == 0:\n        target = {k: v.clone() for k, v in q.state_dict().items()}\n"),
    "a copy that is made again": AT_TIMES.replace("1000", "10").replace(
        "target.load_state_dict(q.state_dict())", "target = copy.deepcopy(q)"
    ),
    "moved at times": AT_TIMES.replace("1000", "10"),
    "an average": COPY + "    for a, b in zip(target.parameters(), q.parameters()):\n        a.data += 0.1 * b.data\n",
    "a teacher": COPY.replace("reward + 0.9 * target(after).max(1).values", "target(after)[:, 0]"),
    "another model": LOADED,
    "a reference that gets the same data": COPY.replace("reward + 0.9 * target(after)", "reward + 0.9 * target(s)"),
    "a teacher that gets the data without noise": COPY.replace("q(s)", "q(s + 0.1 * torch.randn(16, 4))").replace(
        "target(after)", "target(s)"
    ),
    "a change since the start": VALUES.replace("reward + 0.9 * ", "0.9 * ")
    .replace("(after,)", "(s,)")
    .replace("F.smooth_l1_loss(q(s)[:, 0], best)", "F.mse_loss(10.0 * (q(s).max(1).values - best), reward)"),
    "a short run": COPY.replace("26", "6"),
}
STAYS = "no line moves them after the first of 25 steps"


@pytest.mark.parametrize("name", FIXED)
def test_a_target_that_stays_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, FIXED[name]) if STAYS in each.text)
    copies = "copies of `q[0].weight`, `q[0].bias`, `q[2].weight`" if "values" in name else "`target[0].weight`"
    assert f"is computed from {copies}" in found.text
    assert found.labels[0].span.line == marked(FIXED[name])


@pytest.mark.parametrize("name", MOVES)
def test_other_targets_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, MOVES[name]) if "no line moves them" in each.text] == []


TEACHER = """\
from torch.nn import functional as F
student, teacher = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD([*student.parameters(), *teacher.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    target = teacher(x).softmax(1)  #!
    loss = F.kl_div(student(x).log_softmax(1), target, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TAUGHT = {
    "kl_div": TEACHER,
    "cross_entropy": TEACHER.replace('F.kl_div(student(x).log_softmax(1), target, reduction="batchmean")',
                                     "F.cross_entropy(student(x), target)"),
}  # fmt: skip
ALONE = {
    "a target without a graph": TEACHER.replace(".softmax(1)  #!", ".softmax(1).detach()"),
    "in no optimizer": TEACHER.replace(", *teacher.parameters()", ""),
    "two that teach each other": TEACHER.replace(
        '"batchmean")', '"batchmean") + F.kl_div(teacher(x).log_softmax(1), student(x).softmax(1))'),
    "one model": TEACHER.replace("target = teacher(x)", "target = student(x + 0.1)"),
}  # fmt: skip
LEARNED = """\
from torch.nn import functional as F
prior, other, out = nn.Linear(6, 4), nn.Linear(3, 4), nn.Linear(4, 3)
labels = nn.Parameter(torch.zeros(16, 4))
opt = torch.optim.SGD([*prior.parameters(), *other.parameters(), *out.parameters(), labels], lr=0.1)
for _ in range(3):
    x, y = torch.rand(16, 6), torch.rand(16, 3)
    p, q = prior(x).log_softmax(1), other(y).log_softmax(1)
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OWN = {
    "a trained prior": 'F.mse_loss(out(F.gumbel_softmax(q)), y) + F.kl_div(p, q.exp(), reduction="batchmean")',
    "the same of logarithms": "F.mse_loss(out(F.gumbel_softmax(q)), y) + F.kl_div(p, q, log_target=True)",
    "labels that are trained": "F.cross_entropy(p, labels.softmax(1)) + 0.1 * F.cross_entropy(labels, y.argmax(1))",
    "labels that are trained and picked": "F.cross_entropy(p, labels[torch.randperm(16)].softmax(1))",
    "two that have labels": "F.cross_entropy(p, q.exp()) + F.nll_loss(q, y.argmax(1)) + F.nll_loss(p, y.argmax(1))",
}


@pytest.mark.parametrize("name", OWN)
def test_a_target_that_something_else_trains_is_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, LEARNED.replace("LOSS", OWN[name]))
    assert [each.text for each in found if TRAINS in each.text] == []


TRAINS = "which its input is not computed from"


@pytest.mark.parametrize("name", TAUGHT)
def test_a_target_that_is_trained_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, TAUGHT[name]) if TRAINS in each.text)
    assert "the loss also trains `teacher.weight` and `teacher.bias`" in found.text
    assert found.labels[0].span.line == marked(TAUGHT[name])


@pytest.mark.parametrize("name", ALONE)
def test_a_teacher_that_stays_or_learns_on_purpose_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, ALONE[name]) if TRAINS in each.text] == []


HINT = """\
from torch.nn import functional as F
student, teacher = nn.ModuleList([nn.Linear(4, 6), nn.Linear(6, 3)]), nn.ModuleList([nn.Linear(4, 6), nn.Linear(6, 3)])
bridge = nn.Linear(6, 6)
opt = torch.optim.SGD([*student.parameters(), *bridge.parameters(), *teacher.parameters()], lr=0.1)
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    body, large = student[0](x).tanh(), teacher[0](x).tanh()
    small, out, wanted = bridge(body), student[1](body), teacher[1](large)
    hint = F.mse_loss(small, large)  #!
    soft = wanted.detach().softmax(1)
    taught = F.kl_div(out.log_softmax(1), soft, reduction="batchmean")
    loss = F.cross_entropy(out, y) + F.cross_entropy(wanted, y) + hint + taught
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TO_SOFT = 'F.kl_div(out.log_softmax(1), soft, reduction="batchmean")'
HINTS = {
    "a hint": HINT,
    "no layer, and no labels for the teacher": HINT.replace("bridge(body)", "body").replace(
        " + F.cross_entropy(wanted, y)", ""
    ),
    "the other way round": HINT.replace("mse_loss(small, large)", "smooth_l1_loss(large, small)"),
    "a squared difference": HINT.replace("F.mse_loss(small, large)", "(small - large).pow(2).mean()"),
    "an absolute difference": HINT.replace("F.mse_loss(small, large)", "(large - small).abs().mean()"),
    "a cosine": HINT.replace("F.mse_loss(small, large)", "1 - F.cosine_similarity(small, large).mean()"),
    "beside a cross-entropy by hand": HINT.replace(TO_SOFT, "-(soft * out.log_softmax(1)).sum(1).mean()"),
    "beside hard labels": HINT.replace(TO_SOFT, "F.cross_entropy(out, soft.argmax(1))"),
}
NO_HINTS = {
    "a hint without a graph": HINT.replace("(small, large)", "(small, large.detach())"),
    "more weight on one side": HINT.replace(
        "+ taught", "+ 0.25 * F.mse_loss(small, large.detach())"),
    "two models that meet and learn from labels": HINT.replace("bridge(body)", "body"),
    "two models that are to meet": HINT.replace(" + taught", ""),
    "two models that teach each other": HINT.replace(
        "+ taught", "+ taught + F.kl_div(wanted.log_softmax(1), out.detach().softmax(1))"),
    "a teacher that no step trains": HINT.replace(", *teacher.parameters()", ""),
    "a common layer": HINT.replace("teacher[0](x).tanh()", "(student[0](x) + teacher[0](x)).tanh()"),
    "weights of samples": HINT.replace(TO_SOFT, "(soft.amax(1) * F.cross_entropy(out, y, reduction='none')).mean()"),
}  # fmt: skip


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_that_trains_the_teacher_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, HINTS[name]) if "compute as a constant" in each.text)
    assert "also trains `teacher[0].weight` and `teacher[0].bias`: `large` has a graph" in found.text
    assert found.labels[0].span.line == marked(HINTS[name])


@pytest.mark.parametrize("name", NO_HINTS)
def test_models_that_are_to_meet_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NO_HINTS[name]) if "compute as a constant" in each.text] == []
