import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("            s.lerp_(p, 1 - self.decay)\n", "            s.lerp_(p, 1 - self.decay)\n        for s, b in zip(self.shadow.buffers(), model.buffers()):\n            s.copy_(b)\n")
a, b = run("ecg_average"), run("ecg_average", fix)
bn = a["average"].shadow.features[1]
assert (bn.running_var == 1).all() and (bn.running_mean == 0).all() and bn.num_batches_tracked == 0
assert (a["model"].features[1].running_var - 1).abs().max() > 0.5
assert a["averaged"][0] > 1.5 * b["averaged"][0] and a["averaged"][0] > 1.5 * a["live"][0], (a["averaged"], b["averaged"], a["live"])
print("proved: ecg_average")
