import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# After an evaluation the weights must be those of before it. Look at one lend / give_back of each class.
def after_one_loan(*edits):
    r = run("load_forecast", *edits, ("STEPS = 300", "STEPS = 7"))
    model, average = r["model"], r["average"]
    before = flat(model)
    average.lend()
    lent = flat(model)
    average.give_back()
    return before, lent, flat(model)

repair = ("self.stash[name] = p.data", "self.stash[name] = p.data.clone()")
before, lent, after = after_one_loan()
assert rel(lent, before) > 1e-3
assert torch.equal(after, lent) and not torch.equal(after, before)
before, lent, after = after_one_loan(repair)
assert rel(lent, before) > 1e-3 and torch.equal(after, before)

# In the run: the stash is the memory of the weights, and the training is thrown back at each evaluation.
wrong, right = run("load_forecast"), run("load_forecast", repair)
model, average = wrong["model"], wrong["average"]
average.lend()
assert all(average.stash[n].data_ptr() == p.data_ptr() for n, p in model.named_parameters())
halfway = [dict((s, e) for s, _, e in r["history"]) for r in (wrong, right)]
print({s: (round(halfway[0][s], 4), round(halfway[1][s], 4)) for s in (50, 100, 150, 300)})
assert halfway[0][50] > 1.3 * halfway[1][50] and halfway[0][100] > 1.3 * halfway[1][100]
