import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, in_optimizer, run

wrong = run("molecule_graph", capture=["main"]).locals["main"]
model, opt = wrong["model"], wrong["optimizer"]
ids = {id(p) for p in model.parameters()}
for conv in model.convs:
    for p in conv.parameters():
        assert id(p) not in ids and not in_optimizer(p, opt) and p.grad is not None
start = run("molecule_graph", ("range(10)", "range(0)"), capture=["main"]).locals["main"]["model"]
assert all(torch.equal(flat(a), flat(b)) for a, b in zip(model.convs, start.convs))
fixed = run(
    "molecule_graph",
    ("[GraphConv(dim, dim) for _ in range(depth)]", "nn.ModuleList(GraphConv(dim, dim) for _ in range(depth))"),
    capture=["main"],
).locals["main"]
assert not torch.equal(flat(fixed["model"].convs[0]), flat(start.convs[0]))
assert fixed["mae"] < 0.8 * wrong["mae"], (fixed["mae"], wrong["mae"])
print("proved: molecule_graph")
