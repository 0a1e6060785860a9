import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
bad = run("pinn_cooling", capture=("main", "time_derivative"))
good = run("pinn_cooling", ("retain_graph=True", "create_graph=True"), capture=("main", "time_derivative"))
b, g = bad.locals["main"]["mean"], good.locals["main"]["mean"]
print("mean error", b, "repaired", g)
assert not bad.locals["time_derivative"]["du"].requires_grad and good.locals["time_derivative"]["du"].requires_grad
assert b > 0.08 and g < 0.03 and b > 3 * g
