import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("dna_motif", capture=["main"])
b = run("dna_motif", ("torch.zeros(longest, 1, dim)", "torch.zeros(1, longest, dim)"), ("table[:, 0, 0::2]", "table[0, :, 0::2]"), ("table[:, 0, 1::2]", "table[0, :, 1::2]"), ("self.table[: x.size(0)]", "self.table[:, : x.size(1)]"), capture=["main"])
for r, bad in ((a, True), (b, False)):
    model = r.locals["main"]["model"].eval()
    x = r.locals["main"]["valid"].tensors[0][:8]
    same_batch = torch.allclose(model(x)[5], model(x[5:6])[0], atol=1e-4)
    order = torch.allclose(model(x)[5], model(x.flip(1))[5], atol=1e-4)
    assert same_batch != bad and order == bad, (same_batch, order)
last = lambda r: float(r.output.split()[-1])
assert last(b) > last(a) + 0.15, (last(a), last(b))
print("proved: dna_motif")
