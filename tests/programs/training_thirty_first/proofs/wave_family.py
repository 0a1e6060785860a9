import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

import copy

REPAIR = ("before = self.model.state_dict()", "before = copy.deepcopy(self.model.state_dict())")


def one_round(epsilon, *edits):
    g = run("wave_family", *edits, as_main=False)
    torch.manual_seed(1)
    model = g["Regressor"]()
    task = g["Wave"]()
    start = flat(model)
    learner = g["Reptile"](model)
    twin = copy.deepcopy(model)
    torch.manual_seed(2)
    learner.meta_step(task, epsilon)
    torch.manual_seed(2)
    x, y = task.draw(24)
    g["adapt"](twin, x, y, learner.inner_steps, learner.inner_lr)
    return start, flat(model), flat(twin)


# As written the meta step always goes all the way to the adapted weights, whatever epsilon is.
for epsilon in (0.0, 0.1, 0.5):
    start, moved, adapted = one_round(epsilon)
    assert torch.equal(moved, adapted) and rel(adapted, start) > 1e-2
    start, moved, adapted = one_round(epsilon, REPAIR)
    wanted = start + epsilon * (adapted - start)
    assert rel(moved, wanted) < 1e-5

g = run("wave_family", as_main=False)
model = g["Regressor"]()
assert all(v.data_ptr() == p.data_ptr() for v, p in zip(model.state_dict().values(), model.parameters()))

KEEP = ('    for i in range(rounds):', '    scores = []\n    for i in range(rounds):')
NOTE = ("        if (i + 1) % 50 == 0:", "        if i >= rounds - 20:\n            scores.append(flat(model))\n        if (i + 1) % 50 == 0:")
inject = {"flat": flat}
bad = run("wave_family", KEEP, NOTE, capture=("main",), inject=inject).locals["main"]
good = run("wave_family", KEEP, NOTE, REPAIR, capture=("main",), inject=inject).locals["main"]
stir = lambda r: sum((b - a).norm().item() for a, b in zip(r["scores"], r["scores"][1:])) / 19
g = run("wave_family", as_main=False)
torch.manual_seed(99)
tests = g["make_tests"](12)


def errors(r):
    """Few-shot errors of the initial weights after each fourth of the last 20 rounds."""
    found = []
    for weights in r["scores"][3::4]:
        torch.nn.utils.vector_to_parameters(weights, r["model"].parameters())
        found.append(g["few_shot_error"](r["model"], tests))
    return torch.tensor(found)


a, b = errors(bad), errors(good)
print("movement per round at the end of the schedule", stir(bad), stir(good))
print("few-shot errors: mean", a.mean().item(), b.mean().item(), "spread", a.std().item(), b.std().item())
assert stir(bad) > 5 * stir(good)
assert b.mean() < a.mean() and 3 * b.std() < a.std()
