import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "movie_factors"

was = run(NAME)
saved = was["stopper"].weights
assert all(saved[k].data_ptr() == p.data_ptr() for k, p in was["model"].named_parameters())
assert was["final"] > was["stopper"].best + 1e-4
now = run(NAME, ("model.state_dict()", "{k: v.clone() for k, v in model.state_dict().items()}"))
assert abs(now["final"] - now["stopper"].best) < 1e-6

print(f"proved: {NAME}")
