import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("retain_graph=True)[0]", "create_graph=True)[0]")
bad = run("infusion_kinetics", capture=("main",))
good = run("infusion_kinetics", fix, capture=("main",))


def gradient(res):
    """d(physics loss)/d(a weight vector), by backward and by finite differences"""
    torch.manual_seed(0)
    model = res["KineticsPINN"]().double()
    t = torch.linspace(0.5, 9.5, 20, dtype=torch.double).unsqueeze(1)
    (model.residual(t) ** 2).mean().backward()
    w = model.net[4].weight
    g, numeric = w.grad.clone(), torch.zeros_like(w)
    for j in range(w.shape[1]):
        values = []
        for delta in (1e-5, -2e-5):
            with torch.no_grad():
                w[0, j] += delta
            values.append((model.residual(t) ** 2).mean().item())
        with torch.no_grad():
            w[0, j] += 1e-5
        numeric[0, j] = (values[0] - values[1]) / 2e-5
    return rel(g, numeric.detach())


eb, eg = gradient(bad), gradient(good)
print("error of the gradient of the physics loss:", eb, "->", eg)
b, g = bad.locals["main"], good.locals["main"]
print("V, k, forecast rmse:", b["volume"], b["elimination"], b["forecast"], "->", g["volume"], g["elimination"], g["forecast"])
assert eg < 1e-6 and eb > 0.1
assert g["forecast"] < 0.5 * b["forecast"]
