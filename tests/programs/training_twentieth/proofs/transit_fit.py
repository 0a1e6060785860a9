import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("first = torch.lerp(first, p.grad, 1 - b1)", "first.lerp_(p.grad, 1 - b1)")


def states(r):
    return [r["optimizer"].state[p]["first"].abs().max().item() for p in r["model"].parameters()]


bad = run("transit_fit")
good = run("transit_fit", fix)
print("largest |first moment| in the state:", states(bad), states(good))
print("rms", bad["rms"], good["rms"])
assert all(s == 0 for s in states(bad)) and all(s > 0 for s in states(good))
assert bad["rms"] > 4 * good["rms"]
