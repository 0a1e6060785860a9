import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

bad = run("trellis_voter", capture=("main",))
good = run("trellis_voter", ("pooled[dst] += messages", "pooled.index_add_(0, dst, messages)"), capture=("main",))

# the layer against a dense adjacency matrix
loc = good.locals["main"]
x, edges = loc["x"], loc["edges"]
n = len(x)
adj = torch.zeros(n, n)
adj[edges[1], edges[0]] = 1.0
deg = adj.sum(1)
torch.manual_seed(0)
good_layer = good["GraphLayer"](32, 8)
torch.manual_seed(0)
bad_layer = bad["GraphLayer"](32, 8)
with torch.no_grad():
    wg = good_layer.gate.weight[0]
    gate = torch.sigmoid((x @ wg[:32])[None, :] + (x @ wg[32:])[:, None] + good_layer.gate.bias)
    ref = (adj * gate) @ good_layer.w_nbr(x) / deg.clamp(min=1)[:, None]
    out = {k: l(x, edges, deg) - l.w_self(x) for k, l in (("bad", bad_layer), ("good", good_layer))}
print("pooled vs dense, wrong/right:", rel(out["bad"], ref), rel(out["good"], ref))
a, b = bad.locals["main"]["best_test"], good.locals["main"]["best_test"]
print("test accuracy wrong/right:", a, b)
print(bad.output, good.output, sep="\n")
assert rel(out["bad"], ref) > 0.3 and rel(out["good"], ref) < 1e-4
assert b > a + 0.1
