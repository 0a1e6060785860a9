import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

lrs = {}
import torch
step = torch.optim.SGD.step


def record(key):
    lrs[key] = []

    def logged(self, *a, **k):
        lrs[key].append(self.param_groups[0]["lr"])
        return step(self, *a, **k)
    torch.optim.SGD.step = logged


record("bad")
bad = run("ecg_onecycle")
record("good")
good = run("ecg_onecycle",
           ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
           ("    scheduler.step()\n    print", "    print"))
print("highest lr", max(lrs["bad"]), "repaired", max(lrs["good"]))
print("last lr", lrs["bad"][-1], "repaired", lrs["good"][-1])
print("scheduler steps", bad["scheduler"].last_epoch, "of", bad["scheduler"].total_steps)
print(bad.output, good.output, sep="\n")
assert max(lrs["bad"]) < 0.05 and max(lrs["good"]) > 0.099
assert lrs["bad"][-1] == max(lrs["bad"]) and lrs["good"][-1] < 1e-3
assert bad["scheduler"].last_epoch < 0.1 * bad["scheduler"].total_steps


def final_loss(r):
    return float(r.output.splitlines()[-1].split("loss ")[1].split()[0])


assert final_loss(good) < final_loss(bad)
