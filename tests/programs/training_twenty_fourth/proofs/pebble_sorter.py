import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)
bad = run("pebble_sorter")
good = run("pebble_sorter", ("image = self.images[index]\n", "image = self.images[index].clone()\n"))
original, _ = bad["make_split"](640, seed=1)
erased = {k: (r["train_set"].images == 0).float().mean().item() for k, r in (("bad", bad), ("good", good))}
print("share of erased training pixels", erased, "last training loss", bad["final_loss"], good["final_loss"])
assert erased["bad"] > 0.5 and erased["good"] < 1e-3
assert torch.equal(good["train_set"].images, original) and not torch.equal(bad["train_set"].images, original)
assert bad["final_loss"] > 2 * good["final_loss"]
