import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
# repaired: the state is cut once at the start of a chunk, not every day
repair = (
    ("state = self.cell(day, state.detach())", "state = self.cell(day, state)"),
    ("        forecasts = []\n", "        forecasts = []\n        state = state.detach()\n"),
)
bad = run("snowmelt_gauge")
good = run("snowmelt_gauge", *repair)


def reach(r):
    """Does the forecast on day 20 feel the weather of day 12?"""
    days = r["inputs"][:20].clone().requires_grad_()
    out, _ = r["model"](days, r["model"].start(days.shape[1]))
    out[-1].sum().backward()
    return days.grad[12].abs().sum().item()


print(bad.output, good.output, reach(bad), reach(good), bad["final"], good["final"])
assert reach(bad) == 0.0 and reach(good) > 1e-3
assert good["final"] < 0.8 * bad["final"]
