import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("vae_strokes", capture=("main",)).locals["main"]
g = run("vae_strokes", ("q.sample()", "q.rsample()"), capture=("main",)).locals["main"]
print("error", b["error"], "repaired", g["error"], "mean picture", b["baseline"])
assert b["error"] > 0.9 * b["baseline"] and g["error"] < 0.5 * b["error"]
_, rec, _ = b["model"].loss(b["test"])
b["model"].zero_grad(); rec.backward()
assert all(p.grad is None for p in b["model"].encoder.parameters())
