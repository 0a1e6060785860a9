import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

torch.set_num_threads(1)
FIX = [("        self.t = 0\n", "        for group in self.param_groups:\n            group['t'] = 0\n"),
       ("        self.t += 1\n", ""),
       ('beta1, beta2 = group["betas"]', "beta1, beta2 = group['betas']; group['t'] += 1"),
       ("** self.t", "** group['t']")]
STRAIGHT = ("model, optimizer = build()\n    start = load(disk, model, optimizer)", "start = 15")


def finals(*edits):
    resumed, straight = run("quince_adam", *edits), run("quince_adam", STRAIGHT, *edits)
    return flat(resumed["model"]), flat(straight["model"])


(wr, ws), (fr, fs) = finals(), finals(*FIX)
print(rel(wr, ws), rel(fr, fs), rel(ws, fs))
assert rel(fr, fs) == 0.0          # a resumed run equals an uninterrupted one
assert rel(wr, ws) > 0.01
assert rel(ws, fs) == 0.0          # without the interruption, both optimizers are the same

# the first steps after the resume: the continued optimizer and the loaded one from the same state, on the same batches
g = run("quince_adam", as_main=False)
data = g["surface"](1500, torch.Generator().manual_seed(1))
model, opt = g["build"]()
g["train_epochs"](model, opt, data, 0, 15)
disk = g["io"].BytesIO()
g["save"](disk, model, opt, 15)
other, opt2 = g["build"]()
g["load"](disk, other, opt2)
assert torch.equal(flat(model), flat(other))
length = []
for m, o in ((model, opt), (other, opt2)):
    length.append(0.0)
    for idx in torch.arange(640).split(32):
        before = flat(m)
        o.zero_grad()
        (m(data[0][idx]) - data[1][idx]).square().mean().backward()
        o.step()
        length[-1] += (flat(m) - before).norm().item()
print("path of 20 steps: continued, resumed", length)
assert length[1] < 0.6 * length[0]
