"""expect: element-does-not-require-grad

Ensembles with functional_call: the state that is passed in was detached for stacking.
"""

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

torch.manual_seed(8)
members = [nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 1)) for _ in range(3)]


def stacked(models):
    _, buffers = stack_module_state(models)
    every = [dict(model.named_parameters()) for model in models]
    return {name: torch.stack([each[name] for each in every]) for name in every[0]}, buffers  # role: graph_cut_here


def predict(params, buffers, x):
    return functional_call(members[0], (params, buffers), (x,))


optimizer = torch.optim.Adam([p for m in members for p in m.parameters()])
for epoch in range(2):
    x = torch.randn(6, 2)
    params, buffers = stacked(members)
    out = vmap(predict, in_dims=(0, 0, None))(params, buffers, x)
    loss = (out - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
