import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

fix = ("T_max=EPOCHS", "T_max=EPOCHS * (split // BATCH)")
bad, good = run("cosine_prices"), run("cosine_prices", fix)
rises = lambda v: sum(b > a * 1.0001 for a, b in zip(v, v[1:]))
print("rises", rises(bad["lrs"]), rises(good["lrs"]), "last lr", bad["lrs"][-1], good["lrs"][-1])
print("train", bad["train_loss"], good["train_loss"], "test", bad["history"][-1], good["history"][-1])
assert rises(bad["lrs"]) > 0.4 * len(bad["lrs"]) and rises(good["lrs"]) == 0
assert bad["lrs"][-1] > 0.9 * bad["lrs"][0] and good["lrs"][-1] < 1e-4 * good["lrs"][0]
assert bad["train_loss"] > 1.02 * good["train_loss"]
