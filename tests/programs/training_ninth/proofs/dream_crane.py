import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel
import torch

fix = ("        sum(terms.values()).backward()", "        model_opt.zero_grad()\n        sum(terms.values()).backward()")


def stepped_gradients(*edits):
    """What the model's optimizer is given at each step, next to the gradient of the model loss alone."""
    seen, torch_adam = [], torch.optim.Adam
    class Spy(torch_adam):
        def step(self, *a, **k):
            seen.append((len(self.param_groups[0]["params"]), torch.cat([p.grad.flatten() for p in self.param_groups[0]["params"]])))
            return super().step(*a, **k)
    ns = run("dream_crane", *edits, as_main=False)
    torch.optim.Adam = Spy
    true = []
    original = ns["WorldModel"].loss
    def loss(self, *a):
        terms = original(self, *a)
        g = torch.autograd.grad(sum(terms.values()), list(self.parameters()), retain_graph=True)
        true.append(torch.cat([x.flatten() for x in g]))
        return terms
    ns["WorldModel"].loss = loss
    import contextlib, io
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            _, _, log = ns["main"]()
    finally:
        torch.optim.Adam = torch_adam
    n = max(k for k, _ in seen)
    return [rel(g, t) for g, t in zip([g for k, g in seen if k == n], true)], log


ew, lw = stepped_gradients()
ef, lf = stepped_gradients(fix)
tail = lambda log: torch.tensor(log[100:]).mean(0)
print(ew[0], sum(ew[1:]) / len(ew[1:]), max(ef), tail(lw), tail(lf))
assert ew[0] < 1e-4 and min(ew[1:]) > 0.02 and sum(ew[1:]) / len(ew[1:]) > 0.5 and max(ef) < 1e-4
assert tail(lw)[3] < 2 * tail(lf)[3]
