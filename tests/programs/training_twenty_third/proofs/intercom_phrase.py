import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
probe = ("    for step in range(1, args.steps + 1):\n", "    first = model.classifier.weight.detach().clone()\n    for step in range(1, args.steps + 1):\n")
fix = ('p.requires_grad_("lora_" in name)', 'p.requires_grad_("lora_" in name or name.startswith("classifier"))')
bad = run("intercom_phrase", probe, capture=("adapt",))
good = run("intercom_phrase", probe, fix, capture=("adapt",))
move = [rel(r["model"].classifier.weight.detach(), r.locals["adapt"]["first"]) for r in (bad, good)]
print("classifier moved", move, "accuracy", bad["accuracy"], good["accuracy"])
assert not in_optimizer(bad["model"].classifier.weight, bad["optimizer"])
assert in_optimizer(good["model"].classifier.weight, good["optimizer"])
assert move[0] == 0.0 and move[1] > 0.1
assert good["accuracy"] > bad["accuracy"] + 0.05
