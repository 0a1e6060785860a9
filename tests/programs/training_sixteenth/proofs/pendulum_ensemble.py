import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

wrong = run("pendulum_ensemble", ("params, buffers = stack", "initial = [copy.deepcopy(m) for m in members]\nparams, buffers = stack"))
moved = max((flat(a) - flat(b)).abs().max().item() for a, b in zip(wrong["initial"], wrong["members"]))
trained = max((wrong["params"][k][i] - p).abs().max().item() for i, m in enumerate(wrong["members"]) for k, p in m.named_parameters())
fixed = run("pendulum_ensemble", ("mean, spread = rollout(", "for i, m in enumerate(members):\n    m.load_state_dict({k: v[i].detach() for k, v in params.items()})\nmean, spread = rollout("))
print("members moved by", moved, "; trained stack differs by", trained)
print("rollout rmse as written", wrong["rollout_rmse"], "with trained weights", fixed["rollout_rmse"])
assert moved == 0.0 and trained > 0.1
assert fixed["rollout_rmse"] < 0.3 * wrong["rollout_rmse"]
