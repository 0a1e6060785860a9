import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
N = "keyword_int4_training"
steps = lambda r: [p for n, p in r["model"].named_parameters() if n.endswith("log_step")]
fix = ("    q = torch.round(x / step).clamp(low, high) * step\n    return x + (q - x).detach()",
       "    v = (x / step).clamp(low, high)\n    return (v + (torch.round(v) - v).detach()) * step")
bad, good = run(N), run(N, fix)
assert len(steps(bad)) == 6 and all(p.grad is None for p in steps(bad))
assert all(p.grad.abs() > 0 for p in steps(good))
assert all(abs(a.item() - b.item()) > 1e-3 for a, b in zip(steps(bad), steps(good)))
print(f"proved: {N}")
