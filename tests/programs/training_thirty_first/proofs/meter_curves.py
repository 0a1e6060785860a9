import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

short = ("iterations = 90", "iterations = 30")
repair = ("name: p.detach() for", "name: p.detach().clone() for")
zero = ("step_size=0.3,", "step_size=0.0,")
other = ("step_size=0.3,", "step_size=0.9,")

torch.manual_seed(5)
# with a step size of zero the shared weights have to stay as they were initialised
written, repaired = run("meter_curves", short, zero), run("meter_curves", short, zero, repair)
torch.manual_seed(5)
initial = flat(written["CurveNet"]())
assert torch.equal(flat(repaired["trained"]), initial)
assert rel(flat(written["trained"]), initial) > 0.05
# the step size has no effect as written, and has one after the repair
a, b = run("meter_curves", short), run("meter_curves", short, other)
assert rel(flat(a["trained"]), flat(b["trained"])) < 1e-6, rel(flat(a["trained"]), flat(b["trained"]))
c, d = run("meter_curves", short, repair), run("meter_curves", short, other, repair)
assert rel(flat(c["trained"]), flat(d["trained"])) > 0.02
# the snapshot shares the memory of the parameters
r = run("meter_curves", short, capture=("update",))
start = r.locals["update"]["start"]
assert all(start[n].data_ptr() == p.data_ptr() for n, p in r["trained"].named_parameters())
print("ok")
