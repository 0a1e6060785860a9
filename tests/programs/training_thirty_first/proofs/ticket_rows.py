import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

name = "ticket_rows"
as_written = run(name)
repaired = run(name, (
    "torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)",
    "torch.optim.AdamW([{'params': [model.table.weight], 'weight_decay': 0.0}, "
    "{'params': [*model.hidden.parameters(), *model.queues.parameters()]}], lr=1e-2, weight_decay=0.1)"))

moved = rel(as_written["table"]["known"], as_written["vectors"])
kept = rel(repaired["table"]["known"], repaired["vectors"])
print(moved, kept)
assert moved > 0.1
assert kept == 0.0
# the gradient of the known rows is zero in both: only the decay of the optimizer moves them
k = as_written["KNOWN"]
assert as_written["model"].table.weight.grad[:k].abs().max() == 0
assert as_written["model"].table.weight.grad[k:].abs().max() > 0
