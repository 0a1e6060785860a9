import torch
import torch.nn.functional as F
from torch import nn


class FilterBank(nn.Module):
    def __init__(self, inp, out, size, stride=1):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(out, inp, size) * 0.15 + 0.03)
        self.gain = nn.Parameter(torch.ones(out))
        self.stride = stride

    def forward(self, x):
        flat = self.kernel.flatten(1)
        spread, centre = torch.std_mean(flat, dim=1, keepdim=True)
        fan = flat.size(1) ** 0.5
        scaled = ((flat - centre) / (spread * fan + 1e-5)).view_as(self.kernel)
        y = F.conv1d(x, scaled, stride=self.stride, padding="valid")
        return y * self.gain[:, None]


class PhoneNet(nn.Module):
    def __init__(self, phones):
        super().__init__()
        self.stack = nn.ModuleList([FilterBank(1, 8, 9, 2), FilterBank(8, 16, 5, 2), FilterBank(16, 16, 3, 2)])
        self.decide = nn.Linear(16, phones)

    def forward(self, wave):
        h = wave[:, None]
        for bank in self.stack:
            h = F.leaky_relu(bank(h), 0.1)
        return self.decide(h.mean(-1))


def utterances(n, length, phones):
    label = torch.randint(phones, (n,))
    t = torch.arange(length).float()
    pitch = 0.15 + 0.2 * label.float()[:, None]
    wave = torch.sin(pitch * t + 6 * torch.rand(n, 1)) + 0.4 * torch.randn(n, length)
    return wave + 0.5 * torch.randn(n, 1), label


def main():
    torch.manual_seed(9)
    wave, label = utterances(600, 120, 5)
    net = PhoneNet(5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    for epoch in range(14):
        for rows in torch.randperm(500).split(50):
            loss = F.cross_entropy(net(wave[rows]), label[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            right = (net(wave[500:]).argmax(1) == label[500:]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} held-out accuracy {right:.3f}")


if __name__ == "__main__":
    main()
