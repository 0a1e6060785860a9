import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

OLD = 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            for bx, by'
NEW = 'with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):\n            for bx, by'
bad = run("heron_counts")
good = run("heron_counts", (OLD, NEW))


def stale(result):
    """Run one more epoch; after each step compare the net's output with what its present weights give."""
    trainer, x = result["trainer"], result["train_x"][:200]
    gaps, step = [], trainer.optimizer.step

    def watched():
        step()
        with torch.no_grad():
            got = trainer.model(x).float()
            with torch.autocast("cpu", enabled=False):
                want = trainer.model(x)
        gaps.append(rel(got, want))

    trainer.optimizer.step = watched
    trainer.run_epoch(result["train_x"], result["train_y"])
    return gaps


a, b = stale(bad), stale(good)
best_bad, best_good = (min(h for _, h in r["history"]) for r in (bad, good))
print(max(a), max(b), best_bad, best_good)
assert max(b) < 0.02 and max(a) > 5 * max(b)     # the forward pass works with the weights of the epoch's first batch
assert best_good < best_bad - 0.02
