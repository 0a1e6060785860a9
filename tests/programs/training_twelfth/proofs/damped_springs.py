import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("damped_springs")
good = run("damped_springs", ("        total = 0.0\n", "        total = 0.0\n        model.train()\n"))
one = run("damped_springs", ("EPOCHS = 50", "EPOCHS = 1"))
moved = max((a - b).abs().max().item() for a, b in zip(bad["model"].body.parameters(), one["model"].body.parameters()))
print("energy net movement after epoch 1:", moved)
print("val mse as written / repaired:", bad["history"][-1], good["history"][-1], "rollout", bad["drift"], good["drift"])
assert all(p.grad is None for p in bad["model"].body.parameters())
assert moved == 0.0 and bad["history"][-1] > 10 * good["history"][-1] and bad["drift"] > 2 * good["drift"]
