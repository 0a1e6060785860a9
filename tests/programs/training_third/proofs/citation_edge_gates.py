import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
N = "citation_edge_gates"
gate = lambda r: r["runner"].model.adjacency.gate
state = lambda r: int(r["runner"].optimizer.state[gate(r)]["step"])
bad = run(N)
good = run(N, ("        self.model.train()\n", "        self.model.train()\n        self.model.adjacency.invalidate()\n"))
assert gate(bad).grad is None and state(bad) == 1
assert gate(good).grad.abs().sum() > 0 and state(good) == 60
assert gate(good).abs().max() > 5 * gate(bad).abs().max()
print(f"proved: {N}")
