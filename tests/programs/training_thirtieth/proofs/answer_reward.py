import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch
import torch.nn.functional as F

asis = run("answer_reward")
fixed = run("answer_reward", ("self.value_head(self.norm(hidden.mean(dim=1)))", "self.value_head(self.norm(hidden.mean(dim=1))).squeeze(-1)"))
chosen, rejected, margin = asis["test_batch"]
good, bad = asis["score_pairs"](asis["model"], chosen, rejected)
assert (good - bad - margin).shape == (600, 600)
# the margins may be shuffled among the pairs and neither loss nor gradient changes
shuffled = margin[torch.randperm(len(margin))]
def grads(result, m):
    good, bad = result["score_pairs"](result["model"], chosen, rejected)
    result["model"].zero_grad()
    result["preference_loss"](good, bad, m).backward()
    return flat_grad(result["model"])
assert rel(grads(asis, shuffled), grads(asis, margin)) < 1e-3
assert rel(grads(fixed, shuffled), grads(fixed, margin)) > 0.2
# the loss differs from that of the formula
with torch.no_grad():
    formula = -F.logsigmoid((good - bad).flatten() - margin).mean().item()
    program = asis["preference_loss"](good, bad, margin).item()
print("loss", program, "formula", formula)
assert program > 1.2 * formula
print("gaps", asis["gaps"], asis["accuracy"], "repaired", fixed["gaps"], fixed["accuracy"])
