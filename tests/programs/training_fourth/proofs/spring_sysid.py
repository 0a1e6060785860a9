import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("spring_sysid", capture=("main",)).locals["main"]
g = run("spring_sysid", ("damping=0.0)", "damping=0.05)"), capture=("main",)).locals["main"]
print("damping", b["c"], "repaired", g["c"], "error", b["error"], g["error"])
assert b["model"].damping.item() == 0.0 and b["model"].damping.grad.item() == 0.0 and b["model"].stiffness.grad is not None
assert abs(g["c"] - 0.6) < 0.05 and b["error"] > 5 * g["error"]
