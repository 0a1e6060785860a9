import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("wake_trainer")
good = run("wake_trainer", ('state["velocity"] = p.grad.detach()', 'state["velocity"] = p.grad.detach().clone()'))
aliased = [bad["optimizer"].state[p]["velocity"].data_ptr() == p.grad.data_ptr() for p in bad["model"].parameters()]
clean = [good["optimizer"].state[p]["velocity"].data_ptr() == p.grad.data_ptr() for p in good["model"].parameters()]
print(aliased, clean)
a, b = bad["trainer"], good["trainer"]
print(a.epoch_loss, b.epoch_loss, a.accuracy(), b.accuracy())
assert all(aliased) and not any(clean)
assert b.accuracy() > a.accuracy() + 0.1 and b.epoch_loss < a.epoch_loss - 0.2
