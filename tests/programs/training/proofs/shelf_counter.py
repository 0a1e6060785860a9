import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("shelf_counter")
model = wrong["model"]
assert all(torch.count_nonzero(p.grad) == 0 for p in model.count.parameters())
x, labels, counts = wrong["make_shelves"](500)
assert torch.count_nonzero(model(x)[1]) == 0 and counts.mean() > 1
fixed = run("shelf_counter", ("-math.log((1 - prior) / prior)", "1.0"))
assert all(torch.count_nonzero(p.grad) > 0 for p in fixed["model"].count.parameters())
last = lambda r: float(r.output.strip().splitlines()[-1].split()[-1])
assert last(fixed) < 0.5 * last(wrong)
print("proved: shelf_counter")
