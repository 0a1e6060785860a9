"""Checks the sentence about shallow copies of modules that the program takes for modules of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
import copy
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(32, 4), torch.randn(32, 1)
"""
DISTILLED = (
    NET
    + """\
teacher = net()
student = copy.copy(teacher)  #!
opt = torch.optim.SGD(student.parameters(), lr=0.1)
def result(model, noise):
    return model(x + noise)
for _ in range(4):
    with torch.no_grad():
        goal = result(teacher, 0)
    loss = (result(student, 0.1 * torch.randn_like(x)) - goal).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)
AGENT = (
    NET
    + """\
class Agent:
    def __init__(self, online):
        self.online = online
        self.target = copy.copy(online)  #!
        self.opt = torch.optim.SGD(self.online.parameters(), lr=0.1)
    @torch.no_grad()
    def goals(self, after):
        return y + 0.9 * self.target(after)
    def train(self, before, after):
        loss = nn.functional.smooth_l1_loss(self.online(before), self.goals(after))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
agent = Agent(net())
for _ in range(4):
    agent.train(x, torch.randn_like(x))
"""
)
BEST = (
    NET
    + """\
def fit(model):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    best, best_model = float("inf"), None
    for _ in range(5):
        loss = (model(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss.item() < best:
            best, best_model = loss.item(), copy.copy(model)  #!
    return best_model
print(fit(net())(x).mean().item())
"""
)
WRONG = {
    "a student that helper functions run": DISTILLED,
    "a detached target": DISTILLED.replace("    with torch.no_grad():\n        goal = result(teacher, 0)",
                                           "    goal = result(teacher, 0).detach()"),
    "a frozen target of a class": AGENT,
    "imported by name": DISTILLED.replace("import copy\n", "from copy import copy as clone\n").replace(
        "copy.copy(", "clone("),
    "the best model": BEST,
    "a list of snapshots": BEST.replace("        if loss.item() < best:\n            best, best_model = loss.item(), "
                                        "copy.copy(model)  #!\n", "        models.append(copy.copy(model))  #!\n")
    .replace("best, best_model = float(\"inf\"), None", "models = []").replace("return best_model", "return models[0]"),
    "an attribute": BEST.replace("def fit(model):", "class Keeper:\n    best = None\n    loss = 1e9\n"
                                 "    def see(self, model, loss):\n        if self.loss > loss:\n            "
                                 "self.loss = loss\n            self.best = copy.copy(model)  #!\nkeeper = Keeper()\n"
                                 "def fit(model):")
    .replace("        if loss.item() < best:\n            best, best_model = loss.item(), copy.copy(model)  #!\n",
             "        keeper.see(model, loss.item())\n").replace("return best_model", "return keeper.best"),
}  # fmt: skip
LOW = "        if loss.item() < best:\n            best, best_model = loss.item(), copy.copy(model)  #!\n"
RECORD = BEST.replace('best, best_model = float("inf"), None', 'best = {"loss": float("inf")}').replace(
    "return best_model", 'return best["model"]'
)
WRONG |= {
    "an update of a dict": RECORD.replace(LOW, "        if loss.item() < best[\"loss\"]:\n"
                                          "            best.update(loss=loss.item(), model=copy.copy(model))  #!\n"),
    "a flag": BEST.replace(LOW, "        is_better = loss.item() < best\n        if is_better:\n            "
                           "best, best_model = loss.item(), copy.copy(model)  #!\n"),
    "a choice": BEST.replace(LOW, "        best_model = copy.copy(model) if loss.item() < best else best_model  #!\n"
                             "        best = min(best, loss.item())\n"),
    "a function that returns it": BEST.replace("def fit(", "def frozen(model):\n    return copy.copy(model)  #!\n"
                                               "def fit(").replace("copy.copy(model)  #!\n    return", "frozen(model)"
                                                                  "\n    return").replace(
        "loss.item(), copy.copy(model)  #!", "loss.item(), frozen(model)"),
    "a function that chooses": BEST.replace("def fit(", "def better(kept, loss, model):\n    if loss < kept[0]:\n"
                                            "        return loss, copy.copy(model)  #!\n    return kept\ndef fit(")
    .replace(LOW, "        kept = better(kept, loss.item(), model)\n")
    .replace("best, best_model = float(\"inf\"), None", "kept = (1e9, None)")
    .replace("return best_model", "return kept[1]"),
}  # fmt: skip
RIGHT = {
    "an update of what is shown": RECORD.replace(LOW, "        best.update(model=copy.copy(model))\n"),
    "a function that returns a view": BEST.replace("def fit(", "def view(model, loss, low):\n    if loss < low:\n"
                                                   "        return copy.copy(model)\n    return model\ndef fit(")
    .replace(LOW, "        shown = view(model, loss.item(), best)\n        print(shown(x).mean().item())\n")
    .replace("return best_model", "return model"),
    "a deep copy": DISTILLED.replace("copy.copy(", "copy.deepcopy("),
    "a deep copy of the target": AGENT.replace("copy.copy(", "copy.deepcopy("),
    "the best model, copied": BEST.replace("copy.copy(", "copy.deepcopy("),
    "a view for evaluation": BEST.replace(
        "        if loss.item() < best:\n            best, best_model = loss.item(), copy.copy(model)  #!\n",
        "        view = copy.copy(model)\n        with torch.no_grad():\n            print(view(x).mean().item())\n")
    .replace("return best_model", "return model"),
    "a view that the same block uses": BEST.replace(
        "best, best_model = loss.item(), copy.copy(model)  #!",
        "best_model = copy.copy(model)\n            best = best_model(x).mean().item()"),
    "a copy before the training": NET + """\
model = net()
shown = copy.copy(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        print(shown(x).mean().item())
""",
    "a copy with parameters of its own": DISTILLED.replace("copy.copy(teacher)  #!", (
        "copy.copy(teacher)\nstudent._modules = {k: copy.deepcopy(m) for k, m in teacher._modules.items()}")),
    "two modules with one encoder, both trained": NET + """\
model = net()
other = copy.copy(model)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = (model(x) - y).pow(2).mean() + other(torch.randn_like(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an average of the copied model": DISTILLED.replace("copy.copy(teacher)  #!", "copy.copy(teacher)")
    .replace("teacher = net()\n", "teacher = net()\nema = copy.deepcopy(teacher)\n")
    .replace("goal = result(teacher, 0)", "for e, p in zip(ema.parameters(), student.parameters()):\n"
             "            e.copy_(0.9 * e + 0.1 * p)\n        goal = result(ema, 0)"),
}  # fmt: skip
VIEWS = """\
import copy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.heat = nn.Linear(4, 1), 1.0
    def forward(self, x):
        return self.lin(x) / self.heat
x, y = torch.randn(32, 4), torch.randn(32, 1)
net, views = Net(), {}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(5):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if step == 2:
        views[2.0] = copy.copy(net)  #!
    print([view(x).mean().item() for view in views.values()])
"""
VIEW = "        views[2.0] = copy.copy(net)  #!\n"
SHOWN = "        view = copy.copy(net)\n        view.heat = 2.0\n        views.append(copy.copy(view))\n"
LIST = VIEWS.replace("views = Net(), {}", "views = Net(), []").replace("views.values()", "views")
WRONG["a copy with the number of its step"] = VIEWS.replace(VIEW, f"{VIEW}        views[2.0].step = step\n")
RIGHT |= {
    "live views at other temperatures": VIEWS.replace(VIEW, (
        "        for heat in (0.5, 2.0):\n            views[heat] = copy.copy(net)\n"
        "            views[heat].heat = heat\n")),
    "a copy of a view": LIST.replace(VIEW, SHOWN),
    "a view in a list": LIST.replace(VIEW, "        views.append(copy.copy(net))\n        views[-1].heat = 2.0\n"),
    "views that a loop sets up": LIST.replace(VIEW, (
        "        views.append(copy.copy(net))\n        for view in views:\n            view.heat = 2.0\n")),
}  # fmt: skip
WORDS = "without its parameters"


@pytest.mark.parametrize("name", WRONG)
def test_a_shallow_copy_that_is_taken_for_another_module_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


def test_names_that_one_function_calls_are_said_with_the_line_of_the_copy(tmp_path: Path) -> None:
    direct = DISTILLED.replace("result(teacher, 0)", "teacher(x)").replace("result(student, 0.1 *", "student(x + 0.1 *")
    (found,) = (each for each in sentences(tmp_path, direct) if "have the same parameters" in each.text)
    assert marked(direct) in {label.span.line for label in found.labels}


@pytest.mark.parametrize("name", RIGHT)
def test_modules_that_share_parameters_on_purpose_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
