import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# the teacher's modes while the student learns
spy = ("        with torch.no_grad():\n            target", "        MODES.append(self.teacher.training)\n        with torch.no_grad():\n            target")
repair = ("        module.train()\n", "        module.train()\n        if module is globals().get('distiller'): module.teacher.eval()\n")
modes, modes_fixed = [], []
asis = run("sentence_student", spy, inject={"MODES": modes})
fixed = run("sentence_student", spy, repair, inject={"MODES": modes_fixed})
assert modes and all(modes) and modes_fixed and not any(modes_fixed)
# with the module in the mode of the loop, two targets for the same sentences differ
d, ids = asis["distiller"], asis["test_data"][0]
d.train()
with torch.no_grad():
    a, b = d.teacher(ids).softmax(-1), d.teacher(ids).softmax(-1)
    d.teacher.eval()
    clean = d.teacher(ids).softmax(-1)
noise = (a - clean).abs().sum(-1).mean().item()
print("total variation of the targets", noise, "KL", asis["final_kl"], "repaired", fixed["final_kl"])
assert not torch.equal(a, b) and noise > 0.1
assert fixed["final_kl"] < 0.7 * asis["final_kl"]
