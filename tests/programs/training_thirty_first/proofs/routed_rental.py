import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

made = run("routed_rental")
none = run("routed_rental", ("BALANCE_WEIGHT = 0.05", "BALANCE_WEIGHT = 0.0"))
high = run("routed_rental", ("BALANCE_WEIGHT = 0.05", "BALANCE_WEIGHT = 1000.0"))
fixed = run("routed_rental", ("EXPERTS * (load * load).sum()", "EXPERTS * (load * probs.mean(dim=0)).sum()"))
assert not made["balance"].requires_grad and fixed["balance"].requires_grad
assert torch.equal(flat(made["model"]), flat(none["model"]))  # its weight has no influence on what is learnt
assert torch.equal(flat(made["model"]), flat(high["model"]))
uneven = lambda r: (r["load"] ** 2).sum().item() * r["EXPERTS"]
print(uneven(made), uneven(fixed), made["load"], fixed["load"], made["error"], fixed["error"])
assert uneven(fixed) < uneven(made) - 0.1
