import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
from proofkit import flat
import torch

torch.set_num_threads(1)
repair = ("{name: value for name", "{name: value.clone() for name")
bad, good = run("ledger_averages"), run("ledger_averages", repair)


def block_moves(edits):
    """How far do the weights move through a `with average:` block that does nothing?"""
    r = run("ledger_averages", ("steps=1500", "steps=20"), *edits)
    model, average = r["model"], r["average"]
    before = flat(model).clone()
    with average:
        pass
    return rel(flat(model), before)


print(block_moves([]), block_moves([repair]))
loss_bad, loss_good = bad["history"][-1][2], good["history"][-1][2]
print(bad.output, good.output, loss_bad, loss_good)
assert block_moves([]) > 1e-3 and block_moves([repair]) == 0.0
assert loss_bad > loss_good + 0.02
assert bad["history"][-1][3] < good["history"][-1][3] - 0.01
