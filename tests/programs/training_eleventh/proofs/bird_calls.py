import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

a = run("bird_calls")
b = run("bird_calls", ("last.view(len(spec), -1)", "last.transpose(0, 1).reshape(len(spec), -1)"))
print(a.output, b.output)
acc = [r["accuracy"](r["model"], r["test_spec"], r["test_label"]) for r in (a, b)]
print("accuracy", acc)
assert acc[1] > acc[0] + 0.3
# logits of example 0 must depend on example 0 alone
for r, alone in ((a, False), (b, True)):
    x = r["test_spec"][:8].clone().requires_grad_()
    g = torch.autograd.grad(r["model"](x)[0].sum(), x)[0].flatten(1).norm(dim=1)
    print("gradient of the first logits by example", g.tolist())
    assert (g[1:].max().item() == 0) == alone
