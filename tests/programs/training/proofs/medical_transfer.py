import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import run

wrong = run("medical_transfer", capture=["main"]).locals["main"]
def drift(r):
    now = r["model"].backbone.state_dict()
    return {k for k, v in r["before"].items() if not torch.equal(v, now[k])}
assert drift(wrong) and all("running" in k or "num_batches" in k for k in drift(wrong))
fixed = run("medical_transfer", ("        model.train()\n", "        model.train(); model.backbone.eval()\n"), capture=["main"]).locals["main"]
assert not drift(fixed)
assert fixed["kept"] > wrong["kept"] + 0.2, (fixed["kept"], wrong["kept"])
print("proved: medical_transfer")
