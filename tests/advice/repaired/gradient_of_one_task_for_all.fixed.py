"""expect: unused-input-in-grad

The gradients of one task's loss are asked for with respect to both tasks' heads.
"""

import torch
from torch import nn
from torch.nn import functional as F


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 6)
        self.kind = nn.Linear(6, 3)
        self.size = nn.Linear(6, 1)  # role: leaf_made_here

    def forward(self, x):
        features = torch.relu(self.trunk(x))
        return self.kind(features), self.size(features)


def task_losses(model, x, kinds, sizes):
    kind, size = model(x)
    yield "kind", F.cross_entropy(kind, kinds)  # role: graph_built_here
    yield "size", F.mse_loss(size, sizes)


def gradient_of(loss, model):
    gradients = torch.autograd.grad(loss, tuple(model.parameters()), retain_graph=True, materialize_grads=True)  # role: needed_here
    return torch.cat([gradient.flatten() for gradient in gradients])


torch.manual_seed(40)
model = TwoTasks()
batch = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1]), torch.randn(5, 1)
vectors = {name: gradient_of(loss, model) for name, loss in task_losses(model, *batch)}
print(F.cosine_similarity(vectors["kind"], vectors["size"], dim=0))
