import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat

fix = ("        norm = nn.utils", "        self.scaler.unscale_(self.opt)\n        norm = nn.utils")
s = flat(run("amp_audio", ("epochs = 5", "epochs = 0"))["model"])
a, b = run("amp_audio"), run("amp_audio", fix)
assert a["history"][0] - a["history"][-1] < 0.01 and b["history"][-1] < 0.6 * b["history"][0], (a["history"], b["history"])
da, db = (flat(a["model"]) - s).norm().item(), (flat(b["model"]) - s).norm().item()
assert db > 100 * da, (da, db)
print("proved: amp_audio")
