import torch
from torch import nn

torch.manual_seed(33)


class Levels:
    def __init__(self, bits):
        self.top = 2 ** (bits - 1) - 1

    def __call__(self, w):
        unit = w.detach().abs().amax() / self.top
        snapped = torch.round(w / unit) * unit
        with torch.no_grad():
            gap = w - snapped
        return snapped + gap


class CoarseLinear(nn.Linear):
    def __init__(self, *sizes, bits=3):
        super().__init__(*sizes)
        self.levels = Levels(bits)

    def forward(self, x):
        return nn.functional.linear(x, self.levels(self.weight), self.bias)


class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(CoarseLinear(7, 40), nn.Hardswish(), CoarseLinear(40, 40), nn.Hardswish(), nn.Linear(40, 1))

    def forward(self, x):
        return self.net(x).flatten()


weather = torch.randn(400, 7)
load = weather[:, 0].abs() + weather[:, 1] * weather[:, 2] - 0.5 * weather[:, 3]
meter = Meter()
opt = torch.optim.Adam(meter.parameters(), lr=5e-3)
for it in range(200):
    rows = torch.randint(400, (50,))
    loss = nn.functional.huber_loss(meter(weather[rows]), load[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 49:
        print(f"{it + 1} loss {loss.item():.4f}")
with torch.no_grad():
    print("all", nn.functional.huber_loss(meter(weather), load).item())
