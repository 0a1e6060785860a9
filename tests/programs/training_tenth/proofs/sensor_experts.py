import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("gate = F.softmax(top, dim=-1)", "gate = logits.softmax(-1).gather(-1, chosen)")
results = {}
for label, edits in (("wrong", ()), ("right", (FIX,))):
    r = run("sensor_experts", *edits)
    m, x, y = r["model"], r["x"], r["y"]
    m.zero_grad()
    guess, balance = m(x)
    task = r["F"].smooth_l1_loss(guess, y)
    g, = torch.autograd.grad(task, [m.mixture.router.weight], retain_graph=True)
    results[label] = (g.abs().max().item(), r["error"])
    # whatever the input, the gate is exactly one
    if label == "wrong":
        logits = m.mixture.router(m.norm(m.embed(x)))
        top, _ = logits.topk(r["cfg"].active, dim=-1)
        assert torch.equal(torch.softmax(top, -1), torch.ones_like(top))
print(results)
assert results["wrong"][0] == 0.0  # no gradient of the task to the router
assert results["right"][0] > 1e-5
# without the balance term and weight decay the router does not move at all; repaired, it does
KEEP = ("model = Forecaster(cfg)", "model = Forecaster(cfg); start = model.mixture.router.weight.detach().clone()")
ALONE = (("balance: float = 0.01", "balance: float = 0.0"), ("weight_decay=0.01", "weight_decay=0.0"),
         ("epochs: int = 12", "epochs: int = 3"), KEEP)
still = run("sensor_experts", *ALONE)
moved = run("sensor_experts", FIX, *ALONE)
assert torch.equal(still["start"], still["model"].mixture.router.weight)
assert (moved["start"] - moved["model"].mixture.router.weight).abs().max() > 0.01
