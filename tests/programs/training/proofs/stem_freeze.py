import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, rel, run

at_freeze = run("stem_freeze", ("EPOCHS, FREEZE_EPOCH = 7, 3", "EPOCHS, FREEZE_EPOCH = 3, 3"))["model"]
end = run("stem_freeze")["model"]
assert not any(p.requires_grad for p in end.stem.parameters())
assert rel(flat(end.stem), flat(at_freeze.stem)) > 0.01
fixed = run("stem_freeze", ("set_to_none=False", "set_to_none=True"))["model"]
assert torch.equal(flat(fixed.stem), flat(at_freeze.stem))
print("proved: stem_freeze")
