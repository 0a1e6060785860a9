import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
from torch.func import functional_call

fix = [("fast = dict(model.head.named_parameters())", 'fast = {n: p for n, p in model.named_parameters() if n.startswith("head.")}')]
bad, good = run("anil_sinusoids"), run("anil_sinusoids", *fix)
for r, same in ((bad, True), (good, False)):
    support, (x, y) = r["SineTasks"](5).sample()
    fast, _ = r["adapt"](r["model"], support, True)
    adapted = functional_call(r["model"], fast, (x,))
    assert torch.equal(adapted, r["model"](x)) is same
    used = torch.autograd.grad(adapted.sum(), tuple(fast.values()), allow_unused=True)
    assert all((g is None) is same for g in used)
# the inner learning rate has no influence on anything
other = run("anil_sinusoids", ("INNER_LR = 10, 20, 8, 0.5", "INNER_LR = 10, 20, 8, 0.0"))
assert other["test_loss"] == bad["test_loss"]
print(bad["test_loss"], good["test_loss"])
assert good["test_loss"] < 0.7 * bad["test_loss"]
