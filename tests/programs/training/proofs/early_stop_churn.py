import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("early_stop_churn", capture=["main"])
loc = wrong.locals["main"]
state = loc["model"].state_dict()
assert all(v.data_ptr() == state[k].data_ptr() for k, v in loc["stopper"].best_state.items())
final = wrong["evaluate"](loc["model"], loc["x_val"], loc["y_val"])
assert final > loc["stopper"].best_loss + 1e-3, "the restored model is not the best one"
fixed = run("early_stop_churn", ("model.state_dict()", "{k: v.clone() for k, v in model.state_dict().items()}"), capture=["main"])
loc = fixed.locals["main"]
assert abs(fixed["evaluate"](loc["model"], loc["x_val"], loc["y_val"]) - loc["stopper"].best_loss) < 1e-6
print("proved: early_stop_churn")
