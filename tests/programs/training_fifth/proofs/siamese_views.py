import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
w = run("siamese_views", capture=("main",)).locals["main"]
r = run("siamese_views", ("cosine_similarity(p.detach(), z,", "cosine_similarity(p, z.detach(),"), capture=("main",)).locals["main"]
assert all(p.grad is None for p in w["model"].predictor.parameters())
assert all(p.grad is not None for p in r["model"].predictor.parameters())
assert in_optimizer(w["model"].predictor[0].weight, w["optimizer"])
print("spread", w["final_spread"], r["final_spread"], "5-nn", w["accuracy"], r["accuracy"])
assert w["final_spread"] < 0.4 * r["final_spread"] and r["accuracy"] > w["accuracy"]
