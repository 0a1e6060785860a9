import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

old = 'lr, alpha, eps = self.defaults["lr"], self.defaults["alpha"], self.defaults["eps"]\n'
new = 'lr, alpha, eps = self.param_groups[0]["lr"], self.defaults["alpha"], self.defaults["eps"]\n'
bad = run("redshift_langevin", capture=("main",)).locals["main"]
none = run("redshift_langevin", ("        schedule.step()\n", ""), capture=("main",)).locals["main"]
good = run("redshift_langevin", (old, new), capture=("main",)).locals["main"]
for r in (bad, none, good):
    print("rmse", r["rmse"], "single", r["single"], "spread", r["spread"], "lr in group", r["sampler"].param_groups[0]["lr"])
assert bad["energies"] == none["energies"]  # the schedule changes nothing at all
assert good["energies"] != bad["energies"]
assert good["single"] < 0.9 * bad["single"]
