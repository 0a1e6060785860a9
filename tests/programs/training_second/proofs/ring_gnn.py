import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = ("        inbox = torch.zeros_like(h)\n        inbox[dst] += msg\n", "        inbox = torch.zeros_like(h).index_add(0, dst, msg)\n")
a, b = run("ring_gnn"), run("ring_gnn", FIX)
for r, alike in ((a, True), (b, False)):
    layer = r["model"].layers[0]
    h = torch.randn(3, 16)
    three = layer(h, torch.tensor([[0, 1, 1], [2, 2, 2]]))
    one = layer(h, torch.tensor([[1], [2]]))
    assert torch.allclose(three, one, atol=1e-5) == alike
assert a["edges"][1].bincount().min() >= 2
mse = lambda r: r["error"].item()
assert mse(b) < 0.8 * mse(a), (mse(a), mse(b))
print("proved: ring_gnn")
