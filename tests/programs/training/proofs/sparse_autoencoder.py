import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("sparse_autoencoder", capture=["main"]).locals["main"]
assert not wrong["l1"].requires_grad
without = run("sparse_autoencoder", ("lam=2e-3", "lam=0.0"), capture=["main"]).locals["main"]
assert torch.equal(flat(wrong["model"]), flat(without["model"])), "the penalty has no influence"
fixed = run("sparse_autoencoder", ("@torch.no_grad()\n", ""), capture=["main"]).locals["main"]
assert fixed["l1"].item() < 0.7 * wrong["l1"].item()
print("proved: sparse_autoencoder")
