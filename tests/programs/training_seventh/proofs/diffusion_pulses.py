import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat
import torch
w, f = run("diffusion_pulses"), run("diffusion_pulses", ("[p.data for p in self.params]", "[p.data.clone() for p in self.params]"))
print(w.output, f.output)
def swap(r):
    torch.manual_seed(0)
    m = r["Denoiser"]()
    a = r["Averaged"](m)
    with torch.no_grad():
        for p in m.parameters():
            p.add_(1.0)
    before = flat(m).clone()
    with a.in_use():
        inside = flat(m).clone()
    return (flat(m) - before).abs().max().item(), (inside - before).abs().max().item()
print(swap(w), swap(f))
assert swap(w)[0] > 0.5 and swap(f)[0] == 0 and swap(f)[1] > 0.5
last = lambda r: sum(r["losses"][-100:]) / 100
print(last(w), last(f))
assert last(w) > 1.1 * last(f)
assert w["previews"][-1] > 1.05 * f["previews"][-1]
