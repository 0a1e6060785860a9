import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch


def grads(r):
    m, x = r["model"], r["data"][:64]
    recon, _, _ = m(x)
    loss = torch.nn.functional.mse_loss(recon, x)
    ps = list(m.encoder.parameters()) + [m.quantizer.codebook.weight]
    g = torch.autograd.grad(loss, ps, allow_unused=True)
    norm = lambda xs: sum(v.norm().item() for v in xs if v is not None)
    return norm(g[:-1]), norm(g[-1:])


w = grads(run("vqvae_signals"))
f = grads(run("vqvae_signals", ("quantized = quantized + (flat - quantized).detach()", "quantized = flat + (quantized - flat).detach()")))
print("gradient of the reconstruction in (encoder, codebook): wrong", w, "fixed", f)
assert w[0] == 0.0 and w[1] > 0 and f[0] > 1e-4 and f[1] == 0.0
r = run("vqvae_signals")
q, _, _ = r["model"].quantizer(r["model"].encoder(r["data"][:8]))
assert torch.allclose(q, r["model"].encoder(r["data"][:8]), atol=1e-5)  # the decoder sees the unquantised values
