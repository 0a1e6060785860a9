import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

FIX = ("raw = dist.sample()", "raw = dist.rsample()")
OFF = ("log_prob - self.critic(state, action)).mean()", "log_prob - 0 * self.critic(state, action)).mean()")
runs = [run("valve_actor", *e, capture=["train"]) for e in ([], [OFF], [FIX], [FIX, OFF])]
end = [flat(r.locals["train"]["agent"].actor) for r in runs]
assert torch.equal(end[0], end[1]) and not torch.allclose(end[2], end[3], atol=1e-2)
last = lambda r: float(r.output.split()[-1])
assert last(runs[2]) > last(runs[0]) + 0.3, (last(runs[0]), last(runs[2]))
print("proved: valve_actor")
