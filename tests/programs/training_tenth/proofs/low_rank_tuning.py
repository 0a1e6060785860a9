import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("    model.train()\n    model.load_state_dict(best_state)", "    model.eval()\n    model.load_state_dict(best_state)")
KEEP = ("train_set, val_set, test_set =", "frozen = [m.weight.detach().clone() for m in model if hasattr(m, 'weight')]\ntrain_set, val_set, test_set =")
wrong, right = run("low_rank_tuning", KEEP), run("low_rank_tuning", FIX, KEEP)
out = {}
for name, r in (("wrong", wrong), ("right", right)):
    model = r["model"]
    out[name] = (r["before"], r["best"], r["evaluate"](model, r["val_set"]), r["evaluate"](model, r["test_set"]))
    layers = [m for m in model if hasattr(m, "up")]
    model.eval()
    for m, w0 in zip(layers, r["frozen"]):
        delta = (m.scale * m.up @ m.down).detach()
        times = ((m.weight.detach() - w0) * delta).sum() / (delta * delta).sum()
        assert abs(times.item() - (2 if name == "wrong" else 1)) < 1e-3, times  # folded in twice
print(out)
assert out["wrong"][1] == out["right"][1]  # the same best validation error was seen in training
assert out["wrong"][2] > 1.3 * out["wrong"][1]  # and the restored state does not give it
assert abs(out["right"][2] - out["right"][1]) < 1e-6
assert out["right"][3] < 0.8 * out["wrong"][3]
