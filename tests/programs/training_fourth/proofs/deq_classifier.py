import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("deq_classifier", capture=("main",)).locals["main"]
g = run("deq_classifier", ("        z = self.cell(z, injection)\n", "        z = self.cell(z, self.inject(x))\n"), capture=("main",)).locals["main"]
print("accuracy", b["final"], "repaired", g["final"])
assert b["model"].inject.weight.grad is None and b["model"].inject.bias.grad is None
assert b["model"].cell.recurrent.weight.grad is not None and in_optimizer(b["model"].inject.weight, b["optimizer"])
assert g["model"].inject.weight.grad is not None and g["final"] > b["final"] + 0.15
