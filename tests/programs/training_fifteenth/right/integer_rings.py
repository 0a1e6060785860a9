"""Quantisation-aware training with learned step sizes (LSQ) of a small classifier, 4-bit weights and activations.

The float network is trained first; then every linear layer gets a weight quantiser and an activation quantiser whose
step sizes are learned. The exported network uses only the integers and the step sizes.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
BITS, CLASSES, DIM, WIDTH = 4, 8, 10, 48


def make_rings(n, gen):
    """Noisy classes: the class depends on the angle of the first two directions and on the sign of a third."""
    x = torch.randn(n, DIM, generator=gen)
    angle = torch.atan2(x[:, 1], x[:, 0])
    sector = ((angle + torch.pi) / (2 * torch.pi) * 4).long().clamp(max=3)
    return x, sector * 2 + (x[:, 2] > 0).long()


def round_pass(x):
    return x + (x.round() - x).detach()


def scale_gradient(x, factor):
    return x * factor + (x - x * factor).detach()


class LearnedStep(nn.Module):
    def __init__(self, bits, signed):
        super().__init__()
        self.low = -2 ** (bits - 1) if signed else 0
        self.high = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        self.step = nn.Parameter(torch.ones(()))
        self.register_buffer("ready", torch.zeros((), dtype=torch.bool))

    def forward(self, x):
        if not self.ready:
            # data dependent start value, once
            self.step.data.copy_(2 * x.detach().abs().mean() / self.high ** 0.5)
            self.ready.fill_(True)
        step = scale_gradient(self.step, 1.0 / (x.numel() * self.high) ** 0.5)
        return round_pass((x / step).clamp(self.low, self.high)) * step


class QuantLinear(nn.Module):
    def __init__(self, linear, signed_input):
        super().__init__()
        self.linear = linear
        self.weight_q = LearnedStep(BITS, signed=True)
        self.input_q = LearnedStep(BITS, signed=signed_input)

    def forward(self, x):
        return F.linear(self.input_q(x), self.weight_q(self.linear.weight), self.linear.bias)


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def fit(model, groups, x, y, steps, gen):
    optimizer = torch.optim.Adam(groups)
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,), generator=gen)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for m in model.modules():
                if isinstance(m, LearnedStep):
                    m.step.clamp_(min=1e-4)
    return loss.item()


gen = torch.Generator().manual_seed(2)
train_x, train_y = make_rings(4000, gen)
test_x, test_y = make_rings(1500, gen)

net = nn.Sequential(nn.Linear(DIM, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
fit(net, [{"params": net.parameters(), "lr": 3e-3}], train_x, train_y, 800, gen)
print(f"float accuracy {accuracy(net, test_x, test_y):.3f}")

for i in (0, 2, 4):
    net[i] = QuantLinear(net[i], signed_input=(i == 0))
net(train_x[:256])  # sets the start values of the steps
print(f"quantised, before tuning {accuracy(net, test_x, test_y):.3f}")
steps = [p for name, p in net.named_parameters() if name.endswith(".step")]
others = [p for name, p in net.named_parameters() if not name.endswith(".step")]
fit(net, [{"params": others, "lr": 1e-3}, {"params": steps, "lr": 1e-3}], train_x, train_y, 800, gen)
print(f"quantised, after tuning  {accuracy(net, test_x, test_y):.3f}")

for m in net.modules():
    if isinstance(m, QuantLinear):
        q = m.weight_q
        codes = (m.linear.weight.data / q.step.data).clamp(q.low, q.high).round()
        m.linear.weight.data = codes * q.step.data
print(f"exported integers        {accuracy(net, test_x, test_y):.3f}")
