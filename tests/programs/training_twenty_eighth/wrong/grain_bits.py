"""Quantisation-aware training with learned step sizes: a grain-moisture regressor with 2-bit weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)

BANDS = 16
BITS = 2


class StepQuantizer(nn.Module):
    """Symmetric uniform quantiser whose step is learned together with the weights."""

    def __init__(self, bits):
        super().__init__()
        self.low = -(2 ** (bits - 1))
        self.high = 2 ** (bits - 1) - 1
        self.step = nn.Parameter(torch.tensor(1.0))
        self.calibrated = False

    def calibrate(self, w):
        estimate = w.detach().abs().max() / self.high
        self.step = nn.Parameter(estimate)
        self.calibrated = True

    def forward(self, w):
        if not self.calibrated:
            self.calibrate(w)
        scale = 1.0 / math.sqrt(w.numel() * self.high)
        step = self.step * scale + (self.step * (1 - scale)).detach()
        level = torch.clamp(w / step, self.low, self.high)
        level = level + (level.round() - level).detach()
        return level * step


class QuantLinear(nn.Linear):
    def __init__(self, in_features, out_features, bits=BITS):
        super().__init__(in_features, out_features)
        self.quantizer = StepQuantizer(bits)

    def forward(self, x):
        return F.linear(x, self.quantizer(self.weight), self.bias)


def build(layer):
    return nn.Sequential(layer(BANDS, 48), nn.ReLU(), layer(48, 48), nn.ReLU(), layer(48, 1))


def make_data(size):
    x = torch.randn(size, BANDS)
    moisture = 2.0 * torch.sin(x[:, 0] + x[:, 1]) + x[:, 2] * x[:, 3] + 0.5 * x[:, 4:8].sum(dim=1)
    return x, (moisture + 0.1 * torch.randn(size)).unsqueeze(1)


def fit(net, optimizer, data, epochs, batch=64, schedule=None):
    x, y = data
    net.train()
    for epoch in range(epochs):
        total = 0.0
        for index in torch.randperm(len(x)).split(batch):
            loss = F.mse_loss(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        if schedule is not None:
            schedule.step()
        if epoch % 5 == 4:
            print(f"  epoch {epoch + 1:2d}  mse {total / len(x):.4f}")
    return total / len(x)


@torch.no_grad()
def error(net, data):
    net.eval()
    return F.mse_loss(net(data[0]), data[1]).item()


def quantized_copy(reference):
    net = build(QuantLinear)
    net.load_state_dict(reference.state_dict(), strict=False)
    return net


def main():
    train, test = make_data(1000), make_data(500)
    reference = build(nn.Linear)
    print("full precision")
    fit(reference, torch.optim.Adam(reference.parameters(), lr=5e-3), train, epochs=15)
    print(f"full precision test mse {error(reference, test):.4f}")

    net = quantized_copy(reference)
    steps = [p for name, p in net.named_parameters() if name.endswith("step")]
    weights = [p for name, p in net.named_parameters() if not name.endswith("step")]
    optimizer = torch.optim.Adam([{"params": weights, "lr": 2e-3}, {"params": steps, "lr": 1e-2}])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
    print(f"{BITS}-bit weights")
    final = fit(net, optimizer, train, epochs=15, schedule=schedule)
    print(f"{BITS}-bit test mse {error(net, test):.4f}, train mse {final:.4f}")
    return net, optimizer, final


if __name__ == "__main__":
    net, optimizer, final = main()
