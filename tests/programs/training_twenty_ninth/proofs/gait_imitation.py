import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("grad_outputs=torch.ones_like(scores))[0]", "grad_outputs=torch.ones_like(scores), create_graph=True)[0]")
def gradient(*edits, weight=5.0):
    ns = run("gait_imitation", *edits, as_main=False)
    ns["PENALTY"] = weight
    torch.manual_seed(0)
    disc = ns["Discriminator"]()
    opt = torch.optim.SGD(disc.parameters(), lr=0.0)
    expert, fake = torch.randn(64, 3), torch.randn(64, 3) + 1
    ns["update_discriminator"](disc, opt, expert, fake)
    return flat_grad(disc)

g5, g0, f5, f0 = gradient(), gradient(weight=0.0), gradient(FIX), gradient(FIX, weight=0.0)
assert torch.equal(g5, g0)            # the penalty, weighted five, adds nothing
assert rel(f0, g0) < 1e-6 and rel(f5, f0) > 0.5
a = run("gait_imitation", capture=("main",))
b = run("gait_imitation", FIX, capture=("main",))
print(a.output, b.output)
pa, pb = a.locals["main"]["penalty"], b.locals["main"]["penalty"]
assert pa > 3 * pb, (pa, pb)
