import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("decay_pinn")
good = run("decay_pinn", ("retain_graph=True)", "create_graph=True)"))
print("rmse as written", bad["final_rmse"], "repaired", good["final_rmse"])
t = bad["sample_times"](8)
dv = bad["time_derivative"](bad["VoltageNet"]()(t), t)
print("derivative in the graph:", dv.requires_grad)
assert not dv.requires_grad
assert bad["final_rmse"] > 5 * good["final_rmse"]
