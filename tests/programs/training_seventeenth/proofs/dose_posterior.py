import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

wrong = run("dose_posterior")
fixed = run("dose_posterior", ("posterior.append(net.state_dict())",
                               "posterior.append({k: v.clone() for k, v in net.state_dict().items()})"))


def distinct(w):
    return len({tuple(s["out.weight"].flatten().tolist()) for s in w["posterior"]})


print("distinct draws", distinct(wrong), distinct(fixed))
extra = [(w["std"].pow(2) - w["NOISE"] ** 2).clamp(min=0).sqrt().mean().item() for w in (wrong, fixed)]
print("epistemic std", extra, "rmse", wrong["rmse"], fixed["rmse"], "NLPD", wrong["nlpd"], fixed["nlpd"])
assert distinct(wrong) == 1 and distinct(fixed) == fixed["DRAWS"]
assert extra[0] < 1e-4 and extra[1] > 0.02
assert fixed["nlpd"] < wrong["nlpd"]
