import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad, good = run("resin_graphs"), run("resin_graphs", ("start += int(g.edge_index.max()) + 1", "start += len(g.x)"))


def batch_vs_single(r):
    graphs, model = r["graphs"][:64], r["model"]
    x, e, owner, y = r["collate"](graphs)
    with torch.no_grad():
        together = model(x, e, owner, len(y))
        alone = torch.cat([model(g.x, g.edge_index, torch.zeros(len(g.x), dtype=torch.long), 1) for g in graphs])
    crossing = (owner[e[0]] != owner[e[1]]).float().mean().item()
    return rel(together, alone), crossing


b, g = batch_vs_single(bad), batch_vs_single(good)
print(b, g, bad["r2"], good["r2"])
assert b[0] > 0.1 and g[0] < 1e-4
assert b[1] > 0.01 and g[1] == 0
assert good["r2"] > bad["r2"] + 0.2
