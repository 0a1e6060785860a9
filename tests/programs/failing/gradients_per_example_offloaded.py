"""expect: saved-tensor-hooks-disabled

Activations are moved to the CPU by hooks on saved tensors, and the same model is then used inside `torch.func.grad`.
"""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


class Offloaded(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        with torch.autograd.graph.save_on_cpu():  # role: rejected_here
            hidden = self.inner(x)
        return self.head(hidden)


torch.manual_seed(5)
model = Offloaded(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(6, 3), torch.randn(6, 1)
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


def loss_of_one(weights, sample, target):
    prediction = functional_call(model, weights, (sample.unsqueeze(0),))
    return nn.functional.mse_loss(prediction, target.unsqueeze(0))


weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
per_example = vmap(grad(loss_of_one), in_dims=(None, 0, 0))
norms = per_example(weights, x, y)  # role: mode_entered_here
print(norms["head.weight"].flatten(1).norm(dim=1))
