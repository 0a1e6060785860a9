import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

REPAIR = ("    model.train()\n    total", "    model.train()\n    if not next(model.trunk.parameters()).requires_grad:\n"
          "        model.trunk.eval()\n    total")
KEEP = ("    model.freeze_trunk()\n", "    frozen = {k: v.clone() for k, v in model.trunk.state_dict().items()}\n"
        "    model.freeze_trunk()\n    frozen_mode = model.trunk.training\n")
MODE = ("        seen += len(x)\n", "        seen += len(x)\n        trunk_mode = model.trunk.training\n")


def look(*edits):
    r = run("sensor_heads", KEEP, MODE, *edits, capture=("main", "run_epoch")).locals
    m = r["main"]
    now = m["model"].trunk.state_dict()
    params = {k for k, _ in m["model"].trunk.named_parameters()}
    change = lambda names: max((now[k].float() - m["frozen"][k].float()).abs().max().item() for k in names)
    print("parameters", change(params), "buffers", change(set(now) - params), "north", m["first"], "->", m["final"])
    assert m["frozen_mode"] is False
    return change(params), change(set(now) - params), m["first"], m["final"]["north"], r["run_epoch"]["trunk_mode"]


params, buffers, first, last, mode = look()
assert mode is True and params == 0.0 and buffers > 0.1 and last < first - 0.05
params, buffers, first, last, mode = look(REPAIR)
assert mode is False and params == 0.0 and buffers == 0.0 and last == first
