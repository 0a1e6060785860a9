import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("self.class_prior = torch.full((N_CLASSES,), 1.0 / N_CLASSES)",
       "self.register_buffer('class_prior', torch.full((N_CLASSES,), 1.0 / N_CLASSES))")
UNBROKEN = ("    second = Trainer(total)\n    second.load(path)\n", "    second = first\n")
cap = {"capture": ("main", "load")}
bad, good, whole = run("orchid_ledger", **cap), run("orchid_ledger", FIX, **cap), run("orchid_ledger", UNBROKEN, **cap)
params = lambda r: list(r.locals["main"]["second"].model.parameters())
assert all(a.equal(b) for a, b in zip(params(good), params(whole)))      # repaired: resume is exact
assert not all(a.equal(b) for a, b in zip(params(bad), params(whole)))
assert "class_prior" not in bad.locals["load"]["state"]["model"]
assert "class_prior" in good.locals["load"]["state"]["model"]
b, g, w = (r.locals["main"]["recall"] for r in (bad, good, whole))
print("rare recall", b[-3:].mean().item(), g[-3:].mean().item(), w[-3:].mean().item(), "balanced", b.mean(), g.mean())
assert g[-3:].mean() > b[-3:].mean() + 0.05 and g.mean() > b.mean() + 0.01
