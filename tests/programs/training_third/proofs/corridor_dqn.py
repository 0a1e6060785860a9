import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel
N = "corridor_dqn"
bad = run(N)["agent"]
good = run(N, ("p_target.data = p_online.data", "p_target.data.copy_(p_online.data)"))["agent"]
assert bad.updates % bad.sync_every != 0
assert all(a.data_ptr() == b.data_ptr() for a, b in zip(bad.target.parameters(), bad.online.parameters()))
assert all(a.data_ptr() != b.data_ptr() for a, b in zip(good.target.parameters(), good.online.parameters()))
assert rel(flat(good.target), flat(good.online)) > 1e-4
assert rel(flat(bad.online), flat(good.online)) > 1e-3
print(f"proved: {N}")
