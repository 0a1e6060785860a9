import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

fix = ("retain_graph=True)", "create_graph=True)")
w, f = run("advection_speed"), run("advection_speed", fix)


def physics_grads(ns):
    torch.manual_seed(0)
    field = ns["Field"]()
    t, x = ns["collocation"](64, torch.Generator().manual_seed(0))
    (ns["transport_residual"](field, t, x) ** 2).mean().backward()
    return [p.grad for p in field.net.parameters()], field.speed.grad


gw, sw = physics_grads(w)
gf, sf = physics_grads(f)
assert all(g is None for g in gw) and sw is not None
assert all(g is not None and g.abs().sum() > 0 for g in gf[:-1]) and torch.allclose(sw, sf)
print("physics", w["history"][-1][1], f["history"][-1][1], "rmse", w["rmse"], f["rmse"])
assert w["history"][-1][1] > 5 * f["history"][-1][1]
