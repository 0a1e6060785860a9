"""Quantisation-aware training with learned step sizes: 2-bit weights and activations, started from a dense network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
FEATURES, CLASSES, BITS = 24, 6, 2


class StepQuantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, low, high):
        scaled = x / step
        ctx.save_for_backward(scaled)
        ctx.low, ctx.high = low, high
        return scaled.round().clamp(low, high) * step

    @staticmethod
    def backward(ctx, grad):
        (scaled,) = ctx.saved_tensors
        below, above = scaled < ctx.low, scaled > ctx.high
        inside = ~(below | above)
        by_step = torch.where(inside, scaled.round() - scaled, below * float(ctx.low) + above * float(ctx.high))
        factor = (scaled.numel() * ctx.high) ** -0.5
        return grad * inside, (grad * by_step).sum().reshape(1) * factor, None, None


class Quantiser(nn.Module):
    def __init__(self, signed):
        super().__init__()
        self.low, self.high = (-(2 ** (BITS - 1)), 2 ** (BITS - 1) - 1) if signed else (0, 2**BITS - 1)
        self.step = nn.Parameter(torch.ones(1))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        if not self.ready:
            with torch.no_grad():
                self.step.copy_((2 * x.abs().mean() / self.high**0.5).reshape(1))
                self.ready.fill_(True)
        return StepQuantise.apply(x, self.step, self.low, self.high)


class QuantLinear(nn.Linear):
    def __init__(self, fan_in, fan_out):
        super().__init__(fan_in, fan_out)
        self.quant_w, self.quant_x = Quantiser(signed=True), Quantiser(signed=False)
        self.quantised = False

    def forward(self, x):
        if not self.quantised:
            return super().forward(x)
        return F.linear(self.quant_x(x), self.quant_w(self.weight), self.bias)


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first, self.norm = nn.Linear(FEATURES, width), nn.BatchNorm1d(width)
        self.hidden, self.last = QuantLinear(width, width), QuantLinear(width, CLASSES)

    def forward(self, x):
        return self.last(F.relu(self.hidden(F.relu(self.norm(self.first(x))))))


def make_data(count, centres):
    labels = torch.randint(0, CLASSES, (count,))
    return centres[labels, torch.randint(0, 3, (count,))] + 0.7 * torch.randn(count, FEATURES), labels


@torch.no_grad()
def accuracy(net, x, y):
    return (net.eval()(x).argmax(1) == y).float().mean().item()


def fit(net, optimizer, x, y, epochs, freeze_norm):
    for _ in range(epochs):
        net.train()
        if freeze_norm:
            net.norm.eval()
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(net(x[index]), y[index]).backward()
            optimizer.step()


centres = torch.randn(CLASSES, 3, FEATURES) * 0.7
train_x, train_y = make_data(2048, centres)
test_x, test_y = make_data(2048, centres)
net = Net()
weights = [p for n, p in net.named_parameters() if not n.endswith("step")]
fit(net, torch.optim.Adam(weights, lr=3e-3), train_x, train_y, epochs=5, freeze_norm=False)
print(f"dense accuracy {accuracy(net, test_x, test_y):.3f}")
for layer in (net.hidden, net.last):
    layer.quantised = True
net.eval()(train_x[:256])
print(f"2 bits before training {accuracy(net, test_x, test_y):.3f}")
steps = [p for n, p in net.named_parameters() if n.endswith("step")]
groups = [{"params": weights, "lr": 1e-3}, {"params": steps, "lr": 1e-3}]
fit(net, torch.optim.Adam(groups), train_x, train_y, epochs=5, freeze_norm=True)
print(f"2 bits after training {accuracy(net, test_x, test_y):.3f} steps {[round(s.item(), 3) for s in steps]}")
