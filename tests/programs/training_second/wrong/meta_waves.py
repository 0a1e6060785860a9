import torch
import torch.nn.functional as F

torch.manual_seed(40)


def init_weights(sizes):
    weights = {}
    for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        weights[f"w{i}"] = (torch.randn(fan_out, fan_in) / fan_in**0.5).requires_grad_()
        weights[f"b{i}"] = torch.zeros(fan_out).requires_grad_()
    return weights


def forward(weights, x):
    layers = len(weights) // 2
    for i in range(layers):
        x = F.linear(x, weights[f"w{i}"], weights[f"b{i}"])
        if i < layers - 1:
            x = torch.tanh(x)
    return x


def sample_task():
    amplitude = 0.5 + 2 * torch.rand(1)
    phase = 3.14 * torch.rand(1)
    x = torch.rand(20, 1) * 8 - 4
    y = amplitude * torch.sin(x + phase)
    return (x[:10], y[:10]), (x[10:], y[10:])


def make_adapter(rates):
    def adapt(weights, support, steps=2):
        x, y = support
        fast = dict(weights)
        for _ in range(steps):
            inner = F.mse_loss(forward(fast, x), y)
            grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            sizes = {name: F.softplus(rate).item() for name, rate in rates.items()}
            fast = {name: w - sizes[name] * g for (name, w), g in zip(fast.items(), grads)}
        return fast

    return adapt


weights = init_weights([1, 24, 24, 1])
rates = {name: torch.tensor(-4.0, requires_grad=True) for name in weights}
adapt = make_adapter(rates)
optimizer = torch.optim.Adam(
    [
        {"params": list(weights.values()), "lr": 3e-3},
        {"params": list(rates.values()), "lr": 3e-2},
    ]
)

for iteration in range(60):
    outer = 0.0
    for _ in range(4):
        support, (x, y) = sample_task()
        outer = outer + F.mse_loss(forward(adapt(weights, support), x), y) / 4
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
    if iteration % 15 == 14:
        print(f"iteration {iteration + 1} outer loss {outer.item():.4f}")

before, after = [], []
for _ in range(20):
    support, (x, y) = sample_task()
    tuned = adapt(weights, support)
    before.append(F.mse_loss(forward(weights, x), y).item())
    after.append(F.mse_loss(forward(tuned, x), y).item())
print(f"query loss {sum(before) / 20:.4f} -> {sum(after) / 20:.4f}")
