import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("trainable = filter(lambda p: p.requires_grad, model.parameters())",
       "trainable = [p for p in model.parameters() if p.requires_grad]")
NOTE = (("average = 0.0", "average = 0.0\nreturned, after = [], []"),
        ("    nn.utils.clip_grad_norm_(trainable, max_norm=0.1)",
         "    returned.append(nn.utils.clip_grad_norm_(trainable, max_norm=0.1).item())\n"
         "    after.append(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm().item())"))
wrong, right = run("load_forecast", *NOTE), run("load_forecast", FIX, *NOTE)
assert list(wrong["trainable"]) == []  # the optimizer has used the iterator up
assert all(v == 0 for v in wrong["returned"])  # clipping sees no gradient at all
print(sum(v > 0.1 for v in wrong["after"]), max(wrong["after"]), max(right["after"]), max(right["returned"]))
assert sum(v > 0.1 for v in wrong["after"]) > 350 and max(wrong["after"]) > 1
assert max(right["after"]) < 0.1001 and max(right["returned"]) > 1
print(max(wrong["after"]), max(right["after"]), wrong["error"], right["error"])
assert wrong["error"] > 1.5 * right["error"]
