import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
FIX = (("self.level = level.detach()", "self.level = level"),
       ("    def forward(self, rain):\n", "    def forward(self, rain):\n        self.level = self.level.detach()\n"))
grads, nse = {}, {}
for k, e in ((0, ()), (1, FIX)):
    r = run("weir_cascade", *e)
    nse[k] = r["nse"]
    torch.manual_seed(0)
    m = r["ReservoirSSM"]()
    rain, flow = r["simulate"](8, 40, torch.Generator().manual_seed(1))
    rain.requires_grad_(True)
    m.reset(8)
    out = m(rain)
    reach = torch.autograd.grad(out[:, -1].sum(), rain, retain_graph=True)[0].abs().sum((0, 2))
    torch.nn.functional.mse_loss(out, flow).backward()
    grads[k] = (m.decay.grad.clone(), m.inflow.weight.grad.clone(), int((reach > 0).sum()))
print(nse, grads[0][2], grads[1][2], rel(grads[0][0], grads[1][0]), rel(grads[0][1], grads[1][1]))
assert grads[0][2] == 1 and grads[1][2] == 40
assert rel(grads[0][0], grads[1][0]) > 0.2 and rel(grads[0][1], grads[1][1]) > 0.2
assert nse[1] > nse[0] + 0.005
