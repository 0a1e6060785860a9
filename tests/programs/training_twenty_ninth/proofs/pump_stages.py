import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

LOG = ("+ param.grad.norm().item()", "+ (0.0 if param.grad is None else param.grad.norm().item())")
CLEAR = ("self.optimizer.zero_grad(set_to_none=False)", "self.optimizer.zero_grad()")
KEEP = (
    "        self.schedule.apply(self.model, stage)\n",
    "        self.schedule.apply(self.model, stage)\n"
    "        kept.append({n: p.detach().clone() for n, p in self.model.named_parameters() if not p.requires_grad})\n",
)


def drift(*edits):
    kept = []
    result = run("pump_stages", KEEP, *edits, inject={"kept": kept})
    now = dict(result["trainer"].model.named_parameters())
    assert not any(now[n].requires_grad for n in kept[1])
    return {n: rel(now[n].detach(), old) for n, old in kept[1].items()}, result


moved, wrong = drift()
stayed, right = drift(LOG, CLEAR)
flow = [r["scores"][s]["flow"] for r in (wrong, right) for s in ("flow", "vibration")]
print(moved, stayed, flow)
assert min(moved.values()) > 0.05 and max(stayed.values()) == 0.0
assert flow[1] > 3 * flow[0]          # the frozen flow predictor gets worse while the other head is trained
assert flow[3] == flow[2]
