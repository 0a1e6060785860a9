import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad, rel

one = ("steps=40", "steps=1")
fix1 = ("            self.energy(x).sum().backward()\n", "            slope, = torch.autograd.grad(self.energy(x).sum(), x)\n")
fix2 = ("x.grad + self", "slope + self")
a, b = run("ebm_langevin", one), run("ebm_langevin", one, fix1, fix2)
assert a.output == b.output
ga, gb = flat_grad(a["energy"]), flat_grad(b["energy"])
assert rel(ga, gb) > 5, rel(ga, gb)
print("proved: ebm_langevin")
