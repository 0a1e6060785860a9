import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("        return quantized, codebook_loss", "        quantized = z + (quantized - z).detach()\n        return quantized, codebook_loss")
bad, good = run("vq_patches"), run("vq_patches", fix)


def encoder_grads(r):
    m = r["model"]
    recon, _, _ = m(r["test"])
    return torch.autograd.grad(torch.nn.functional.mse_loss(recon, r["test"]), list(m.encoder.parameters()), allow_unused=True)


assert all(g is None for g in encoder_grads(bad)) and all(g is not None and g.abs().sum() > 0 for g in encoder_grads(good))
print(bad["error"], good["error"])
assert bad["error"] > 1.3 * good["error"]
