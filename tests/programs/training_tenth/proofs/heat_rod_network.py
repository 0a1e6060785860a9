import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import flat_grad, rel, run
import torch

NAME = "heat_rod_network"
fix = ("points, retain_graph=True)", "points, create_graph=True)")
short = ("steps = 700", "steps = 20")


def equation_gradient(g):
    torch.manual_seed(1)
    g["model"].zero_grad()
    value = g["residual"](g["model"], torch.rand(200, 2)).square().mean()
    value.backward()
    return value.item(), flat_grad(g["model"]).double()


bad = run(NAME, short)
good = run(NAME, short, fix)
good["model"].load_state_dict(bad["model"].state_dict())
(a, wrong), (b, right) = equation_gradient(bad), equation_gradient(good)
assert abs(a - b) < 1e-6, "the loss is the same"
model = good["model"].double()
for layer, p in enumerate(p for p in model.parameters() if p.dim() == 2):
    torch.manual_seed(1)
    points = torch.rand(200, 2).double()
    torch.manual_seed(layer)
    way = torch.randn_like(p)
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            p.add_(sign * 1e-5 * way)
        values.append(good["residual"](model, points.clone()).square().mean().item())
        with torch.no_grad():
            p.sub_(sign * 1e-5 * way)
    slope = (values[0] - values[1]) / 2e-5
    offset = next(sum(q.numel() for q in list(model.parameters())[:i]) for i, q in enumerate(model.parameters()) if q is p)
    own = slice(offset, offset + p.numel())
    said = [(g[own] * way.flatten()).sum().item() for g in (wrong, right)]
    print(f"layer {layer}: measured slope {slope:.5f}, program {said[0]:.5f}, repaired {said[1]:.5f}")
    assert abs(said[1] - slope) < 1e-2 * abs(slope) + 1e-4
print("relative error of the equation's gradient", rel(wrong, right))
assert rel(wrong, right) > 0.3
ends = [g["evaluate"](g["model"]) for g in (run(NAME), run(NAME, fix))]
print("relative errors of the solution", ends)
assert ends[1] < 0.6 * ends[0]
