import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("cosine_autoencoder")
good = run("cosine_autoencoder", ("    scheduler.step()\n", ""), ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"))
for r in (bad, good):
    print("schedule steps", r["scheduler"].last_epoch, "of", r["total_steps"], "lr", r["scheduler"].get_last_lr(), "error", r["test_error"])
assert bad["scheduler"].last_epoch == 8 and bad["total_steps"] == 240 == good["scheduler"].last_epoch
assert bad["scheduler"].get_last_lr()[0] < 0.5 * bad["BASE_LR"]  # still in the warmup when training ends
assert good["scheduler"].get_last_lr()[0] < 1e-9
assert good["test_error"] < 0.9 * bad["test_error"]
