import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("inbox[dst] += msg", "inbox = inbox.index_add(0, dst, msg)")
bad = run("resin_affinity", capture=("main",))
good = run("resin_affinity", fix, capture=("main",))
rb, rg = bad.locals["main"]["rmse"].item(), good.locals["main"]["rmse"].item()

# an atom with three neighbours: its state must depend on every one of them
def senders(res):
    torch.manual_seed(0)
    layer, h, edges = res["BondLayer"](8), torch.randn(4, 8), torch.tensor([[1, 2, 3], [0, 0, 0]])
    base, heard = layer(h, edges)[0], 0
    for j in (1, 2, 3):
        moved = h.clone()
        moved[j] += 1.0
        heard += not torch.allclose(layer(moved, edges)[0], base)
    return heard

sb, sg = senders(bad), senders(good)
print("test rmse", rb, "->", rg, " neighbours heard", sb, "->", sg)
assert sb == 1 and sg == 3
assert rg < 0.6 * rb
