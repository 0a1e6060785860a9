"""Anomaly mode, hooks on saved tensors, checkpoints, forward mode, transforms and inference mode, each used rightly."""

import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
settings = {"scale": 2.0}
calls = []


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        calls.append(len(calls))  # a counter that decides nothing
        return x + self.dropout(torch.tanh(self.linear(x))) * settings["scale"]


model = nn.Sequential(Block(4), Block(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    model.train()
    x = torch.randn(3, 4, requires_grad=True)
    hidden = checkpoint(model[0], x, use_reentrant=bool(step % 2))
    with torch.autograd.graph.save_on_cpu():
        hidden = model[1](hidden)
    loss = checkpoint_sequential(model[2:], 1, hidden, use_reentrant=False).square().mean()
    optimizer.zero_grad()
    with torch.autograd.set_detect_anomaly(step == 0):
        loss.backward()
    optimizer.step()
    settings["scale"] /= 2
    model.eval()
    with torch.inference_mode():
        print(step, model(x.detach()).shape)

with forward_ad.dual_level():
    moving = forward_ad.make_dual(torch.ones(4), torch.ones(4))
    print(forward_ad.unpack_dual(model[2](moving)).tangent.shape)


def energy(position):
    return position.square().sum()


print(torch.vmap(torch.func.grad(energy))(torch.ones(2, 3)))
print(torch.vmap(lambda x: x + torch.randn(2), randomness="different")(torch.zeros(3, 2)).shape)
