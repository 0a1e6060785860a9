import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

repair = ("maps.append(weights.detach())", "maps.append(weights)")
asis = run("guided_alignment")
off = run("guided_alignment", ("weight = 1.0", "weight = 0.0"))
fixed = run("guided_alignment", repair)
assert not asis["guided"].requires_grad and fixed["guided"].requires_grad
# the term does nothing at all: the run without it ends in the same parameters
assert torch.equal(flat(asis["model"]), flat(off["model"]))
assert not torch.equal(flat(asis["model"]), flat(fixed["model"]))
print("alignment loss", asis["test_guided"], asis["alignment_error"], "repaired", fixed["test_guided"], fixed["alignment_error"])
print("translation loss", asis["test_translation"], "repaired", fixed["test_translation"])
assert fixed["test_guided"] < 0.3 * asis["test_guided"]
assert fixed["test_translation"] < asis["test_translation"]
