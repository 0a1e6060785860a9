import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

a = run("splat_fit")
assert not any(in_optimizer(p, a["opt"]) for p in a["splats"].parameters())
h = a["history"]
assert len(set(h[185:])) == 1, set(h[185:])              # the loss is frozen after the densification
old = "            motion = torch.zeros(len(splats.mean))\n"
b = run("splat_fit", (old, old + "            opt = make_optimizer(splats)\n"))
assert all(in_optimizer(p, b["opt"]) for p in b["splats"].parameters())
print("psnr", a["quality"], "repaired", b["quality"])
assert b["quality"] > a["quality"] + 3
