import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat
N = "sine_meta_learning"
def look(*edits):
    r = run(N, *edits)
    learner = r["trainer"].learner
    torch.manual_seed(0)
    start = flat(r["MetaSGD"]().net)
    return all(p.grad is None for p in learner.net.parameters()), (flat(learner.net) - start).abs().max().item(), flat(learner.rates).std().item()
none, moved, spread = look()
assert none and moved == 0 and spread > 0
none, moved, _ = look(("{n: w.clone().requires_grad_() for n, w in self.net.state_dict().items()}", "dict(self.net.named_parameters())"))
assert not none and moved > 0.01
print(f"proved: {N}")
