import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("reactor_tasks")
good = run("reactor_tasks", ("outputs.view(len(x), len(self.heads))", "outputs.squeeze(-1).T"))
print(bad.output, good.output)
x = bad["x_test"][:8]


def leak(model):
    """How much do other samples' inputs change the prediction of sample 0, and does sample 0 alone agree?"""
    with torch.no_grad():
        return (model(x)[0] - model(x[:1])[0]).abs().max().item()


print(leak(bad["trainer"].model), leak(good["trainer"].model))
assert leak(bad["trainer"].model) > 1e-2 and leak(good["trainer"].model) < 1e-5
assert bad["scores"].mean() > 0.8 and good["scores"].mean() < 0.1
