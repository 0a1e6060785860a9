import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("        rates.start_epoch()\n", "        if epoch == 0:\n            rates.start_epoch()\n")
a, b = run("layer_rates"), run("layer_rates", fix)
hooks = lambda r: len(r["model"].stem.weight._backward_hooks)
assert hooks(a) == 10 and hooks(b) == 1
ratio = [r["norms"][-1][0] / r["norms"][-1][1] for r in (a, b)]
assert ratio[0] < 0.1 * ratio[1], ratio
print("proved: layer_rates")
