import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("enamel_survey", capture=("main",))
good = run("enamel_survey", ("left:left + self.crop]\n", "left:left + self.crop].clone()\n"), capture=("main",))
clean, _ = bad["make_tiles"](512, 1)
b, g = bad.locals["main"], good.locals["main"]
drift_bad, drift_good = rel(b["train_set"].images, clean), rel(g["train_set"].images, clean)
print("stored tiles moved", drift_bad, drift_good, "held-out acc", b["acc"], g["acc"], "valid loss", b["vloss"], g["vloss"])
assert drift_good == 0.0 and drift_bad > 0.2
assert g["acc"] > b["acc"] + 0.05
