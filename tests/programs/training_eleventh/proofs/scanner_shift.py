import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
fix = ("class_loss - 0.3", "class_loss + 0.3")
a, b = run("scanner_shift"), run("scanner_shift", fix)
print("target accuracy", a["target_acc"], b["target_acc"], "domain loss", a["domain_loss"].item(), b["domain_loss"].item())
assert a["domain_loss"].item() > 5          # the discriminator is driven far above chance (0.69): it is trained to be wrong
assert 0.4 < b["domain_loss"].item() < 0.9
assert b["target_acc"] > a["target_acc"] + 0.3
