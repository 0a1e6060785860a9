import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

fix = ("    probe.load_state_dict(state, strict=False)\n",
       "    state = {k.replace('encoder.', 'backbone.'): v for k, v in state.items()}\n    probe.load_state_dict(state, strict=False)\n")
w, f = run("contrastive_linear_probe"), run("contrastive_linear_probe", fix)
dist = lambda r: (flat(r["probe"].backbone) - flat(r["simclr"].encoder)).norm().item()
print("distance to the pre-trained encoder: wrong", dist(w), "fixed", dist(f), "accuracy", w["accuracy"], f["accuracy"])
assert dist(w) > 1.0 and dist(f) == 0.0
missing, unexpected = w["probe"].load_state_dict(w["simclr"].state_dict(), strict=False)
assert set(missing) == set(w["probe"].state_dict()) and len(unexpected) == len(w["simclr"].state_dict())
assert f["accuracy"] > w["accuracy"]
