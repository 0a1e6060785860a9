import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("session_recommender")
good = run("session_recommender", ("nn.Parameter(torch.zeros(LENGTH, DIM)).unsqueeze(0)", "nn.Parameter(torch.zeros(1, LENGTH, DIM))"))
model = bad["model"]
assert "slot" not in dict(model.named_parameters()) and "slot" not in model.state_dict()
assert not model.slot.is_leaf and model.slot.requires_grad
leaf = model.slot.grad_fn.next_functions[0][0].variable  # the nn.Parameter that only the graph knows
in_groups = any(leaf is p for g in bad["optimizer"].param_groups for p in g["params"])
print("slot table: grad norm", leaf.grad.norm().item(), "max |value|", leaf.abs().max().item(), "in optimizer", in_groups)
assert leaf.grad.norm() > 0 and leaf.abs().max() == 0 and not in_groups
assert good["model"].slot.abs().max() > 0.01
print("hit@1", bad["h1"], "repaired", good["h1"])
assert good["h1"] > 0.95 > 0.6 > bad["h1"]
