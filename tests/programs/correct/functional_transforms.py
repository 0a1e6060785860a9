"""Per-sample gradients, a Jacobian and a Hessian with torch.func, next to an ordinary step."""

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, vmap

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
parameters = {name: p.detach() for name, p in model.named_parameters()}


def loss_of(parameters, x, y):
    return (functional_call(model, parameters, (x[None],)).squeeze() - y).pow(2)


x, y = torch.randn(5, 3), torch.randn(5)
per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, x, y)
print({name: tuple(g.shape) for name, g in per_sample.items()})
print(jacrev(torch.sin)(x[0]).shape, hessian(lambda v: v.pow(3).sum())(x[0]).shape)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = (model(x).squeeze(-1) - y).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
