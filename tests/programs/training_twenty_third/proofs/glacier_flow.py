import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = (("self.initialized = False", 'self.register_buffer("initialized", torch.tensor(False))'),
       ("self.initialized = True", "self.initialized.fill_(True)"))
bad, good = run("glacier_flow"), run("glacier_flow", *fix)
for name, glob in (("as written", bad), ("repaired", good)):
    with torch.no_grad():
        reference = glob["flow"].log_prob(glob["night"])  # the trained model itself, still in memory
    glob["gap"] = rel(glob["log_prob"], reference)
    glob["nll"] = -glob["log_prob"][90:].mean().item()
    print(name, "gap to the trained model", glob["gap"], "auc", glob["auc"], "nll", glob["nll"])
assert rel(bad["flow"].log_prob(bad["night"]), good["flow"].log_prob(good["night"])) < 1e-5  # same training
assert good["gap"] < 1e-5 and bad["gap"] > 0.05
assert good["auc"] > bad["auc"] + 0.02
assert bad["nll"] > good["nll"] + 0.3
