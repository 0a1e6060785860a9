import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "domain_shift_tuning"

snapshot = "    import copy\n\n    global pretrained\n    pretrained = copy.deepcopy(model)\n"
cast = "    model = model.to(torch.bfloat16)\n"
was = run(NAME, (cast, snapshot + cast))
same = (flat(was["pretrained"]).bfloat16() == flat(was["model"])).float().mean().item()
now = run(
    NAME,
    (cast, snapshot),
    ("    target = (target[0].to(torch.bfloat16), target[1])\n", ""),
)
still = (flat(now["pretrained"]) == flat(now["model"])).float().mean().item()
assert same > 0.8 and still < 0.02, (same, still)

print(f"proved: {NAME}")
