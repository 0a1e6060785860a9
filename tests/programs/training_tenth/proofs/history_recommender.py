import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("history_recommender")
good = run("history_recommender", ("std=0.5)\n", "std=0.5)\n            if module.padding_idx is not None:\n                module.weight.data[module.padding_idx] = 0.0\n"))
untrained = run("history_recommender", ("range(10)", "range(0)"))
row = bad["model"].user.items.weight[0].detach()
assert row.norm() > 1 and torch.equal(row, untrained["model"].user.items.weight[0].detach()), "padding row is noise that never moves"
assert bad["model"].user.items.weight.grad[0].abs().max() == 0
h = torch.tensor([[5, 20]])
for r, same in ((bad, False), (good, True)):
    a, b = r["model"].user(h), r["model"].user(torch.nn.functional.pad(h, (0, 18)))
    assert torch.allclose(a, b, atol=1e-5) is same
print(bad["recall"], good["recall"])
assert good["recall"] > bad["recall"] + 0.03
