import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

SPY = ("        optimizer.step()\n", "        optimizer.step(); rates.append(optimizer.param_groups[0]['lr'])\n")
FIX = ("lr_lambda=warmup_cosine", "lr_lambda=lambda s: warmup_cosine(s) / PEAK_LR")
bad, good = [], []
a = run("shape_resnet", SPY, inject={"rates": bad})
b = run("shape_resnet", SPY, FIX, inject={"rates": good})
print("highest learning rate", max(bad), "repaired", max(good), "meant", a["PEAK_LR"])
print("test accuracy", a["test_acc"], "repaired", b["test_acc"])
assert abs(max(bad) - a["PEAK_LR"] ** 2) < 1e-9
assert abs(max(good) - a["PEAK_LR"]) < 1e-9
assert b["test_acc"] > a["test_acc"] + 0.1
