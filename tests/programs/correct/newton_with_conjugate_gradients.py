"""Newton's method without a Hessian: products with it by double backward, conjugate gradients, a line search."""

import torch

torch.manual_seed(5)
x, y = torch.randn(80, 6), (torch.randn(80) > 0).double()
x = x.double()
weight = torch.zeros(6, dtype=torch.float64, requires_grad=True)
bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
parameters = [weight, bias]


def objective():
    score = x @ weight + bias
    return torch.nn.functional.binary_cross_entropy_with_logits(score, y) + 0.01 * weight.square().sum()


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


values = []
for iteration in range(5):
    loss = objective()
    gradient = flat(torch.autograd.grad(loss, parameters, create_graph=True))
    values.append(loss.item())

    def product(v):
        return flat(torch.autograd.grad(gradient, parameters, v, retain_graph=True)) + 1e-4 * v

    step = torch.zeros_like(gradient)
    residual = -gradient.detach()
    direction = residual.clone()
    for _ in range(10):
        curved = product(direction)
        rate = residual.dot(residual) / direction.dot(curved)
        step += rate * direction
        left = residual - rate * curved
        if left.norm() < 1e-10:
            break
        direction = left + left.dot(left) / residual.dot(residual) * direction
        residual = left
    with torch.no_grad():
        start = [p.clone() for p in parameters]
        for scale in (1.0, 0.5, 0.25):
            weight.copy_(start[0] + scale * step[:6])
            bias.copy_(start[1] + scale * step[6])
            if objective() < loss:
                break
print([round(v, 6) for v in values] == sorted((round(v, 6) for v in values), reverse=True))
