import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
w = run("keyword_spotter")
f = run("keyword_spotter", ("        for clip in feats:", "        feats = feats.clone()\n        for clip in feats:"))
def zeros(r):
    return (r["train"].feats == 0).float().mean().item()
print(zeros(w), zeros(f), w.output, f.output)
assert zeros(w) > 0.5 and zeros(f) < 0.01
assert w["train"].feats.pow(2).mean().item() < 0.6 * w["energy"]
assert f["train"].feats.pow(2).mean().item() == f["energy"]
