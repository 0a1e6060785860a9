import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

START = ("moco = MoCo()\n", "moco = MoCo()\nstart = torch.cat([p.detach().clone().flatten() for p in moco.key.parameters()])\n")
bad = run("moco_tiny", START)
good = run("moco_tiny", START, ("            k = self.m * k + (1 - self.m) * q\n", "            k.mul_(self.m).add_(q, alpha=1 - self.m)\n"))
for r in (bad, good):
    print(r.output, rel(flat(r["moco"].key), r["start"]), rel(flat(r["moco"].key), flat(r["moco"].query)))
assert rel(flat(bad["moco"].key), bad["start"]) == 0
assert rel(flat(good["moco"].key), flat(good["moco"].query)) < 0.3 < rel(flat(bad["moco"].key), flat(bad["moco"].query))
assert good["loss"].item() + 0.3 < bad["loss"].item()
