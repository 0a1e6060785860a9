import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("        self.model.train()\n        for epoch in range(epochs):\n", "        for epoch in range(epochs):\n            self.model.train()\n")
a, b = run("force_field", capture=("run",)), run("force_field", fix, capture=("run",))
assert not a.locals["run"]["f"].requires_grad and b.locals["run"]["f"].requires_grad
assert a["fit"].trace[-1][1] > 1.3 * b["fit"].trace[-1][1], (a["fit"].trace[-1], b["fit"].trace[-1])
noforce = run("force_field", ("epochs=10", "epochs=2"))["fit"], run("force_field", ("epochs=10", "epochs=2"), ("            self.trace", "            self.force_weight = 0.0\n            self.trace"))["fit"]
assert noforce[0].trace == noforce[1].trace
print("proved: force_field")
