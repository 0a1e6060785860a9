import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("tank_identification", capture=("simulate",))
fixed = run("tank_identification",
            ("torch.stack(pumps).view(n, HORIZON, 1)", "torch.stack(pumps, dim=1).view(n, HORIZON, 1)"),
            ("torch.stack(levels).view(n, HORIZON, 2)", "torch.stack(levels, dim=1).view(n, HORIZON, 2)"))


def roughness(w):
    x = w["levels"]
    return ((x[:, 1:] - x[:, :-1]).norm(dim=-1).mean() / x.std()).item()


print("step from one time to the next (in std)", roughness(wrong), roughness(fixed))
print("RMSE", wrong["rmse"].tolist(), fixed["rmse"].tolist(), "fit", wrong["fit"], fixed["fit"])
assert roughness(wrong) > 4 * roughness(fixed)
assert fixed["rmse"].mean() < 0.4 * wrong["rmse"].mean()
