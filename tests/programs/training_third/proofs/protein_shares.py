import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, flat_grad, rel

one = ("torch.arange(len(data[0])).split(batch)", "torch.arange(40).split(batch)"), ("epochs=5", "epochs=1")
off = ("every=2", "every=10**9")
fix = ("            value.backward(retain_graph=True)\n            row[name] = sum(p.grad.pow", "            grads = torch.autograd.grad(value, list(self.module.trunk.parameters()), retain_graph=True)\n            row[name] = sum(p.pow")
drop = ("            self.module.zero_grad()\n", "")
a, b = run("protein_shares", *one)["model"], run("protein_shares", *one, fix, drop)["model"]
for head in ("fold", "exposure"):
    g = getattr(a, head).weight.grad
    assert g is None or g.abs().max() == 0
    assert getattr(b, head).weight.grad.abs().max() > 0
assert rel(flat(run("protein_shares")["model"]), flat(run("protein_shares", fix, drop)["model"])) > 0.02
print("proved: protein_shares")
