import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("return self.state", "return self.state.copy()")
bad, good = run("lantern_walker"), run("lantern_walker", FIX)
np = bad["np"]
rows = lambda r, i=0: np.stack([t[i] for t in r["memory"].data])
print("distinct states", len(np.unique(rows(bad), axis=0)), len(np.unique(rows(good), axis=0)))
assert len(np.unique(rows(bad), axis=0)) == 1  # every stored transition is the same array
assert all(t[0] is t[3] for t in bad["memory"].data)
assert len(np.unique(rows(good), axis=0)) > 1000
assert (rows(bad) == rows(bad, 3)).all() and (rows(good) != rows(good, 3)).any(axis=1).mean() > 0.9
print("return", bad["final_return"], good["final_return"])
assert good["final_return"] > bad["final_return"] + 5
