import torch
from torch import nn

torch.manual_seed(17)


class Leveler:
    def __init__(self):
        self.stats = {}

    def __call__(self, wave):
        self.stats = {"loc": wave.mean(-1, keepdim=True), "scale": wave.std(-1, keepdim=True) + 1e-5}
        return (wave - self.stats["loc"]) / self.stats["scale"]

    def restore(self, wave):
        return torch.addcmul(self.stats["loc"], wave, self.stats["scale"])


class EchoNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.level = Leveler()
        self.mix = nn.Conv1d(2, width, 9, padding=4)
        self.out = nn.Conv1d(width, 1, 9, padding=4)

    def forward(self, mic, far):
        pair = torch.stack([self.level(mic), self.level(far)], dim=1)
        clean = self.out(torch.relu(self.mix(pair))).squeeze(1)
        return self.level.restore(clean)


def scene(n=16, length=64):
    phase = torch.rand(n, 1) * 6.28
    t = torch.arange(length) / 8.0
    voice = (0.5 + 2 * torch.rand(n, 1)) * torch.sin(t + phase) + torch.randn(n, 1)
    far = (0.2 + 3 * torch.rand(n, 1)) * torch.randn(n, length)
    echo = 0.4 * far.roll(2, dims=-1)
    return voice + echo, far, voice


net = EchoNet()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)
for step in range(160):
    mic, far, voice = scene()
    loss = (net(mic, far) - voice).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 39:
        print(f"step {step + 1}  l1 {loss.item():.4f}")
