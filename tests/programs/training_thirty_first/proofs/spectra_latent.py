import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("torch.normal(mean, std)", "mean + std * torch.randn_like(std)")
wrong = run("spectra_latent")
right = run("spectra_latent", FIX)
print(wrong["test_mse"], right["test_mse"], wrong["usage"], right["usage"])


def encoder_gradient(result):
    """Largest gradient that the reconstruction term alone brings to the encoder of a fresh model."""
    torch.manual_seed(0)
    model = result["SpectraVAE"]()
    x = result["train_set"][:64]
    recon, mean, log_var = model(x)
    nll, _ = result["elbo_terms"](recon, x, mean, log_var)
    nll.backward()
    return max(p.grad.abs().max().item() for p in model.encoder.parameters())


assert encoder_gradient(wrong) == 0.0
assert encoder_gradient(right) > 1e-2
assert right["test_mse"] < 0.5 * wrong["test_mse"]
assert wrong["usage"].max().item() < 0.1 * right["usage"].max().item()
