import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

UNFREEZE = "        model.stages[depth].requires_grad_(True)\n"
FIX = (UNFREEZE, UNFREEZE + '        optimizer.add_param_group({"params": list(model.stages[depth].parameters())})\n')
wrong, fixed = run("ecg_transfer"), run("ecg_transfer", FIX)


def moved(r):
    state = r["model"].state_dict()
    return sum((state[k] - v).norm().item() for k, v in r["pretrained"].items() if k.startswith("stages"))


grads = [p.grad.norm().item() for p in wrong["model"].stages.parameters()]
print("moved", moved(wrong), moved(fixed), "smallest grad", min(grads), "accuracy", wrong["test_acc"], fixed["test_acc"])
assert moved(wrong) == 0.0 and moved(fixed) > 1.0
assert all(p.requires_grad for p in wrong["model"].parameters()) and min(grads) > 0
assert fixed["test_acc"] > wrong["test_acc"] + 0.1
