import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

REPAIR = (
    "        vector_to_parameters(theta, self.head.parameters())\n        return self.head(self.trunk(x)), theta",
    "        named, at = {}, 0\n"
    "        for name, p in self.head.named_parameters():\n"
    "            named[name] = theta[at : at + p.numel()].view_as(p)\n"
    "            at += p.numel()\n"
    "        return torch.func.functional_call(self.head, named, (self.trunk(x),)), theta",
)


def fit_gradient(*edits):
    ns = run("chunked_hypernet", *edits, as_main=False)
    torch.manual_seed(5)
    model = ns["ConditionedRegressor"](3)
    x = torch.randn(32, 1)
    prediction, _ = model(x, torch.tensor(1))
    (prediction - x.sin()).square().mean().backward()
    return prediction, [p.grad for p in model.hyper.parameters()]


written, none = fit_gradient()
repaired, some = fit_gradient(REPAIR)
assert torch.allclose(written, repaired)
assert all(g is None for g in none)
assert all(g is not None and g.norm() > 0 for g in some)

errors = run("chunked_hypernet", capture=("main",)).locals["main"]["errors"]
errors_repaired = run("chunked_hypernet", REPAIR, capture=("main",)).locals["main"]["errors"]
print(sum(errors) / 6, sum(errors_repaired) / 6)
assert sum(errors) > 5 * sum(errors_repaired)
