import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np

bad = run("heron_lagoon")
good = run("heron_lagoon", ("return self.state, reward", "return self.state.copy(), reward"),
           ("        return self.state\n", "        return self.state.copy()\n"))
stats = {}
for label, g in (("bad", bad), ("good", good)):
    memory = g["buffer"].memory
    same = np.mean([np.array_equal(m[0], m[3]) for m in memory])
    distinct = len({m[0].tobytes() for m in memory})
    stats[label] = (same, distinct, g["success_rate"](g["q"]))
print(stats)
assert stats["bad"][0] == 1.0 and stats["bad"][1] == 1
assert stats["good"][0] < 0.5 and stats["good"][1] > 600
assert stats["good"][2] > stats["bad"][2] + 0.3
