import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("cluster_forces")
fixed = run("cluster_forces", ("pos, retain_graph=True)", "pos, create_graph=True)"))
print("loss_f.requires_grad", wrong["loss_f"].requires_grad, fixed["loss_f"].requires_grad)
print("force MAE", wrong["force_mae"], fixed["force_mae"])
other = run("cluster_forces", ("FORCE_WEIGHT = 1.0", "FORCE_WEIGHT = 0.0"))
print("force MAE at weight 0", other["force_mae"])
assert not wrong["loss_f"].requires_grad and fixed["loss_f"].requires_grad
assert fixed["force_mae"] < 0.6 * wrong["force_mae"]
assert abs(other["force_mae"] - wrong["force_mae"]) < 1e-6
