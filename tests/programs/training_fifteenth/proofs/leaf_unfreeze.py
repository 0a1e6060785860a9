import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("lr=PEAK, momentum=0.9)\n\n    def run",
       "lr=PEAK, momentum=0.9)\n        self.scheduler.optimizer = self.optimizer\n\n    def run")
a = run("leaf_unfreeze", capture=("main",)).locals["main"]
b = run("leaf_unfreeze", FIX, capture=("main",)).locals["main"]
for n, r in (("as is", a), ("repaired", b)):
    print(n, "lr used", r["tuner"].optimizer.param_groups[0]["lr"], "lr shown", r["tuner"].scheduler.get_last_lr(),
          "train", r["final"], "test", r["test_mse"])
assert a["tuner"].optimizer.param_groups[0]["lr"] == 0.01
assert a["tuner"].scheduler.get_last_lr()[0] < 1e-6
assert b["tuner"].optimizer.param_groups[0]["lr"] < 1e-6
worse = []
for seed in (17, 1, 2):
    s = ("SEED = 17", f"SEED = {seed}")
    p = run("leaf_unfreeze", s, capture=("main",)).locals["main"]
    q = run("leaf_unfreeze", s, FIX, capture=("main",)).locals["main"]
    print(seed, p["test_mse"], q["test_mse"])
    worse.append(p["test_mse"] > 1.1 * q["test_mse"])
assert all(worse)
