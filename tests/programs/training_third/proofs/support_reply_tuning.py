import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
N = "support_reply_tuning"
ups = lambda r: [b.qkv.up for b in r["model"].blocks] + [b.proj.up for b in r["model"].blocks]
bad = run(N)
good = run(N, ("use_reentrant=True", "use_reentrant=False"))
assert all(p.grad is None and p.abs().sum() == 0 for p in ups(bad))
assert all(p.grad is not None and p.abs().sum() > 0 for p in ups(good))
print(f"proved: {N}")
