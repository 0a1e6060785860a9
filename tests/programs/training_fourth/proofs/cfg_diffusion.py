import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("cfg_diffusion", capture=("main", "train"))
g = run("cfg_diffusion", ("        x, label = batch(128)\n", "        model.train()\n        x, label = batch(128)\n"), capture=("main",)).locals["main"]
t, b = b.locals["train"], b.locals["main"]
for d in (b, g):
    print({k: round(d[k], 3) for k in ("conditional", "unconditional", "guided")})
assert not t["model"].training
assert b["guided"] > 3 * g["guided"] and b["unconditional"] > 1.2 * g["unconditional"]
