import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch

bad = run("ring_ddpm")
good = run("ring_ddpm", ("self.backup = [p.detach() for p in parameters]", "self.backup = [p.detach().clone() for p in parameters]"))
print(bad.output, good.output)
for r, same in ((bad, True), (good, False)):
    m, e = r["model"], r["ema"]
    with torch.no_grad():
        for p in m.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    before = flat(m).clone()
    e.store(m.parameters()); e.copy_to(m.parameters()); e.restore(m.parameters())
    d = (flat(m) - before).abs().max().item()
    print("restore changes weights by", d)
    assert (d > 0.05) == same and (same or d == 0)
assert bad["valid"] > 1.1 * good["valid"]
