import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

wrong = run("tracer_forecast")
fixed = run("tracer_forecast", ("        state += model(state)", "        state = state + model(state)"))
truth = run("tracer_forecast", ("state += model(state)", "state = state + model(state)"), ("range(18)", "range(0)"),
            ('print(f"lead 1', '#'))["val"]
moved = [((r["val"][:, 0] - truth[:, 0]).norm() / truth[:, 0].norm()).item() for r in (wrong, fixed)]
print("relative change of the validation set's first frame:", moved)
honest, _ = fixed["forecast_skill"](wrong["model"], truth.clone())
print("reported rollout rmse:", wrong["history"][-1], " same model on intact data:", honest.mean().item(),
      " repaired program:", fixed["history"][-1])
print("lr:", wrong["optimizer"].param_groups[0]["lr"], fixed["optimizer"].param_groups[0]["lr"])
assert moved[0] > 0.2 and moved[1] == 0.0
assert wrong["history"][-1] > 1.5 * honest.mean().item()
