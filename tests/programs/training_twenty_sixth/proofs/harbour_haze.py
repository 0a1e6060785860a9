import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("logsumexp(weight + component", "logsumexp(weight.log() + component")
bad_run, good_run = run("harbour_haze", capture=("main",)), run("harbour_haze", fix, capture=("main",))
bad, good = bad_run.locals["main"], good_run.locals["main"]


def held_out(v):
    """NLL by torch.distributions, an independent implementation."""
    with torch.no_grad():
        w, m, s = v["model"](bad["x_val"])
        mix = torch.distributions.MixtureSameFamily(
            torch.distributions.Categorical(w), torch.distributions.Normal(m, s.exp()))
        return -mix.log_prob(bad["y_val"].squeeze(1)).mean().item()


def mass(r, v):
    """integral of exp(-loss) over y at one x: a density gives 1"""
    grid = torch.linspace(-40, 40, 40001).unsqueeze(1)
    with torch.no_grad():
        w, m, s = v["model"](torch.zeros(1, 1))
        dens = torch.stack([torch.exp(-r["mdn_loss"]((w, m, s), y[None])) for y in grid[::8]])
    return dens.sum().item() * (grid[8] - grid[0]).item()


b, g = held_out(bad), held_out(good)
mb, mg = mass(bad_run, bad), mass(good_run, good)
print("held-out nll", b, g, "| mass", mb, mg)
with torch.no_grad():
    own_b = bad_run["mdn_loss"](bad["model"](bad["x_val"]), bad["y_val"]).item()
    own_g = good_run["mdn_loss"](good["model"](bad["x_val"]), bad["y_val"]).item()
assert abs(own_g - g) < 1e-3 and abs(own_b - b) > 0.5
assert abs(mg - 1) < 0.02 and mb > 3
assert b > g + 0.1
