import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

REPAIR = ("torch.normal(mean, torch.exp(0.5 * logvar))",
          "mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)")


def encoder_gradient(*edits):
    """Norms of the encoder's gradients: of the reconstruction alone, and of the divergence alone."""
    g = run("spectra_encoder", *edits, as_main=False)
    torch.manual_seed(0)
    model = g["SpectraVAE"]()
    x, _ = g["make_spectra"](64)
    reconstruction, divergence = g["elbo_terms"](model, x)
    params = [*model.trunk.parameters(), *model.to_mean.parameters(), *model.to_logvar.parameters()]
    norm = lambda t: sum(0.0 if d is None else d.norm().item()
                         for d in torch.autograd.grad(t, params, retain_graph=True, allow_unused=True))
    return norm(reconstruction), norm(divergence)


r, d = encoder_gradient()
print("written: gradient of the reconstruction", r, "of the divergence", d)
assert r == 0.0 and d > 0
r, d = encoder_gradient(REPAIR)
print("repaired: gradient of the reconstruction", r, "of the divergence", d)
assert r > 0.1 and d > 0

KEEP = ('    print(f"test rmse', '    share = explained(model, x_test, c_test)\n    print(f"test rmse')
bad = run("spectra_encoder", KEEP, capture=("main",)).locals["main"]
good = run("spectra_encoder", KEEP, REPAIR, capture=("main",)).locals["main"]
for name in ("error", "spread", "share"):
    print(name, bad[name], good[name])
assert good["error"] < 0.6 * bad["error"]
assert bad["spread"] < 0.1 < 0.5 < good["spread"]
assert good["share"] > bad["share"] + 0.2
