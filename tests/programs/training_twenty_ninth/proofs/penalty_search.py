import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

fix = ("        valid_error.backward()\n", "        self.outer.zero_grad()\n        valid_error.backward()\n")
probe = ("        self.outer.step()\n", "        GRADS.append((self.log_penalties.grad.clone(), PURE[-1]))\n        self.outer.step()\n")
pure = ("        features, targets = self.valid\n        valid_error = squared_error(self.model.predict(features, ahead), targets)\n",
        "        features, targets = self.valid\n        valid_error = squared_error(self.model.predict(features, ahead), targets)\n"
        "        PURE.append(torch.autograd.grad(valid_error, self.log_penalties, retain_graph=True)[0])\n")

def gradients(*edits):
    found = []
    result = run("penalty_search", pure, *edits, probe, inject={"GRADS": found, "PURE": []})
    return found, result

wrong, as_written = gradients()
right, repaired = gradients(fix)
assert all(torch.allclose(g, p, rtol=1e-4) for g, p in right)
off = [rel(g, p) for g, p in wrong]
print("relative error of the upper gradient, smallest and median:", min(off), sorted(off)[len(off) // 2])
assert min(off) > 1
assert sum(bool((g > 0).all()) for g, p in wrong) > 0.95 * len(wrong)  # always towards smaller penalties

pen = lambda r: r["search"].log_penalties.detach().exp()
print(pen(as_written), pen(repaired), as_written["test_error"], repaired["test_error"])
assert (pen(as_written) < 0.01).all() and pen(repaired)[2] > 0.1
assert as_written["test_error"] > 1.3 * repaired["test_error"]
