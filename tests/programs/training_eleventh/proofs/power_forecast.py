import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("power_forecast")
val_a = a["evaluate"](a["model"], a["x_val"], a["y_val"])
b = run("power_forecast", ("cpu().numpy()", "cpu().numpy().copy()"))
val_b = b["evaluate"](b["model"], b["x_val"], b["y_val"])
print("best val", a["stopper"].best, "val of the restored model: as is", val_a, "last epoch", a["val_mse"], "repaired", val_b)
print("test mse as is", a["test_mse"], "repaired", b["test_mse"])
assert abs(val_b - b["stopper"].best) < 1e-6 and abs(a["stopper"].best - b["stopper"].best) < 1e-6
assert abs(val_a - a["val_mse"]) < 1e-6 and val_a > a["stopper"].best * 1.03
assert a["test_mse"] > b["test_mse"] * 1.03
