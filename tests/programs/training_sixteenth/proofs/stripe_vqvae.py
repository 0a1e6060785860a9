import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

look = "            quantized = self.embedding(index)"
bad = run("stripe_vqvae")
good = run("stripe_vqvae", (look, look[4:]))
w, wg = bad["model"].quantizer.embedding.weight, good["model"].quantizer.embedding.weight
print(bad.output, good.output)
print("codebook grad", w.grad, "largest entry", w.abs().max().item(), "of the initial bound", 1 / 24, "; repaired", wg.abs().max().item())
assert w.grad is None and w.abs().max() <= 1 / 24
assert wg.grad is not None and wg.abs().max() > 0.1
assert good["test_mse"] < 0.9 * bad["test_mse"]
