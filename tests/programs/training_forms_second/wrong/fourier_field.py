import torch
from torch import nn

torch.manual_seed(18)


class WaveBranch(nn.Module):
    def __init__(self, freq, width):
        super().__init__()
        self.register_buffer("freq", freq)
        self.mix = nn.Sequential(nn.Linear(4 * freq.numel(), width), nn.Tanh())

    def forward(self, xy):
        angle = (xy.unsqueeze(-1) * self.freq).flatten(1)
        return self.mix(torch.cat([angle.sin(), angle.cos()], dim=1))


class MultiScaleField(nn.Module):
    def __init__(self, scales=4, per_scale=4, width=16):
        super().__init__()
        self.branches = nn.ModuleList()
        freq = torch.linspace(0.5, 1.0, per_scale)
        for _ in range(scales):
            self.branches.append(WaveBranch(freq, width))
            freq *= 2.0
        self.out = nn.Linear(scales * width, 1)

    def forward(self, xy):
        return self.out(torch.cat([b(xy) for b in self.branches], dim=1))


def potential(xy):
    x, y = xy[:, :1], xy[:, 1:]
    return torch.sin(1.5 * x) * torch.cos(y) + 0.4 * torch.sin(4 * x + 3 * y) + 0.1 * torch.cos(9 * y)


def main():
    points = torch.rand(600, 2) * 4 - 2
    values = potential(points)
    probe = torch.rand(300, 2) * 4 - 2
    field = MultiScaleField()
    optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
    for epoch in range(20):
        for i in torch.randperm(len(points)).split(60):
            optimizer.zero_grad()
            loss = (field(points[i]) - values[i]).square().mean()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} loss {loss.item():.5f}")
    with torch.no_grad():
        print("probe error", (field(probe) - potential(probe)).square().mean().item())


main()
