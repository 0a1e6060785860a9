import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, flat_grad, rel
N = "gradcache_retrieval"
fix = [
    ("return torch.cat([tower(part) for part in tokens.split(self.chunk_size)])",
     "tower.rng = torch.get_rng_state(); return torch.cat([tower(part) for part in tokens.split(self.chunk_size)])"),
    ("        parts = zip(", "        keep = torch.get_rng_state(); torch.set_rng_state(tower.rng)\n        parts = zip("),
    ("            surrogate.backward()\n", "            surrogate.backward()\n        torch.set_rng_state(keep)\n"),
]
def first(*edits):
    r = run(N, *edits, as_main=False)
    torch.manual_seed(0)
    model = r["BiEncoder"]().train()
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    q, d = r["make_pairs"]()
    torch.manual_seed(7)
    direct_q = torch.cat([model.query(p) for p in q.split(16)])
    direct_d = torch.cat([model.doc(p) for p in d.split(16)])
    g = torch.autograd.grad(model.contrast(direct_q, direct_d), list(model.parameters()))
    direct = torch.cat([x.flatten() for x in g])
    torch.manual_seed(7)
    r["CachedStep"](model, opt)(q, d)
    return rel(flat_grad(model), direct)
assert first(*fix) < 1e-4 and first() > 0.1, (first(*fix), first())
assert rel(flat(run(N)["model"]), flat(run(N, *fix)["model"])) > 1e-3
print(f"proved: {N}")
