import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
w = run("lsq_keyword")
f = run("lsq_keyword", ("ctx.needs_input_grad[1]", "ctx.needs_input_grad[3]"))
print(w["first_steps"], w["last_steps"], f["last_steps"])
assert w["first_steps"] == w["last_steps"]
assert all(abs(a - b) > 1e-3 for a, b in zip(f["first_steps"], f["last_steps"]))
assert all(p.grad is None for n, p in w["model"].named_parameters() if n.endswith("step"))
assert all(p.grad is not None for n, p in f["model"].named_parameters())
