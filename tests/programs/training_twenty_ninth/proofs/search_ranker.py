import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

NAME = "search_ranker"
REPAIR = ("        nn.utils.clip_grad_norm_", "        self.scaler.unscale_(self.optimizer)\n        nn.utils.clip_grad_norm_")

bad, good = run(NAME), run(NAME, REPAIR)


def used_norm(result):
    """Norm of what .grad holds after the last step, i.e. of what the optimizer was given (unscaled by scaler.step)."""
    return flat_grad(result["ranker"]).norm().item()


assert used_norm(bad) < 1.01 * bad["CLIP"] / 65536        # clipped while scaled by 65536, then divided by 65536
assert used_norm(good) > 1000 * used_norm(bad)
torch.manual_seed(4)
start = flat(bad["Ranker"]())
assert rel(flat(bad["ranker"]), start) < 1e-3 and rel(flat(good["ranker"]), start) > 0.3
assert bad["losses"][0] - bad["losses"][-1] < 0.005 and good["losses"][0] - good["losses"][-1] > 0.1
assert bad["quality"] < 0.5 and good["quality"] > 0.85
print("proved", used_norm(bad), used_norm(good), bad["quality"], good["quality"])
