import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

FIX = ("self.order = torch.randperm(dim)", 'self.register_buffer("order", torch.randperm(dim))')
bad = run("marble_density", capture=("main", "score"))
good = run("marble_density", FIX, capture=("main", "score"))
print(bad.output, good.output)
for name, r in (("bad", bad), ("good", good)):
    m, loaded = r.locals["main"], r.locals["score"]["flow"]
    same = all(torch.equal(a.order, b.order) for a, b in zip(m["flow"].steps, loaded.steps) if hasattr(a, "order"))
    print(name, "valid nll while training", m["best"], "test log-density after load", m["log_prob"].mean().item(), "orders equal", same)
    with torch.no_grad():
        valid_again = -loaded.log_prob(m["valid"]).mean().item()
    if name == "good":
        assert same and abs(valid_again - m["best"]) < 1e-4
    else:
        assert not same and valid_again > m["best"] + 1.0
    r["test"] = m["log_prob"].mean().item()
assert good["test"] > bad["test"] + 1.0
