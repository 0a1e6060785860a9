import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

WATCH = ("    opt_d.step()\n", "    _g = [p.grad for p in discriminator.parameters()]\n    _own = torch.autograd.grad(bce(discriminator(real), ones) + bce(discriminator(fake.detach()), zeros), list(discriminator.parameters()))\n"
         "    gaps.append((sum((a - b).norm() ** 2 for a, b in zip(_g, _own)) / sum(b.norm() ** 2 for b in _own)).sqrt().item())\n    opt_d.step()\n")
HEAD = ("ones, zeros =", "gaps = []\nones, zeros =")
bad = run("ring_gan", WATCH, HEAD)
good = run("ring_gan", WATCH, HEAD, ("    d_loss.backward()", "    opt_d.zero_grad()\n    d_loss.backward()"))
share = [r["good"].float().mean().item() for r in (bad, good)]
gap = [sorted(r["gaps"])[len(r["gaps"]) // 2] for r in (bad, good)]
print(share, gap, bad["coverage"], good["coverage"], bad.output[-90:], good.output[-90:])
assert gap[0] > 0.3 and gap[1] < 1e-4
assert share[0] + 0.1 < share[1]
