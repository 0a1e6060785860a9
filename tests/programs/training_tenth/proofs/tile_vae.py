import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

import torch

fix = ('buf = state["momentum_buffer"] = grad\n', 'buf = state["momentum_buffer"] = grad.clone()\n')
bad, good = run("tile_vae"), run("tile_vae", fix)
params = list(bad["model"].parameters())
shared = [bad["optimizer"].state[p]["momentum_buffer"] is p.grad for p in params]
print("momentum buffer is .grad:", sum(shared), "of", len(shared))
assert all(shared)
assert not any(good["optimizer"].state[p]["momentum_buffer"].data_ptr() == p.grad.data_ptr()
               for p in good["model"].parameters())

# one parameter, constant gradient 1: momentum 0.9 has to approach steps of 10 * lr
def travel(space):
    p = torch.nn.Parameter(torch.zeros(1))
    opt = space["CentralizedSGD"]([p], lr=1.0)
    for _ in range(100):
        opt.zero_grad(set_to_none=False)
        p.sum().backward()
        before = p.item()
        opt.step()
    return before - p.item()

print("last step of 100:", travel(bad), travel(good))
assert abs(travel(bad) - 1.8) < 1e-4 and travel(good) > 9.9
print(bad.output, good.output)
assert good["final"] < 0.8 * bad["final"]
