import torch
from torch import nn


class Noiser:
    def __init__(self, levels, seed):
        beta = torch.linspace(1e-3, 0.15, levels)
        self.keep = torch.cumprod(1 - beta, 0)
        self.levels = levels
        self.gen = torch.Generator().manual_seed(seed)

    def __call__(self, clean):
        gen = self.gen
        t = torch.randint(0, self.levels, (len(clean),), generator=gen)
        eps = torch.randn(clean.shape, generator=gen)
        k = self.keep[t].view(-1, 1, 1, 1)
        return k.sqrt() * clean + (1 - k).sqrt() * eps, t, eps


class Denoiser(nn.Module):
    def __init__(self, levels, ch=16):
        super().__init__()
        self.time = nn.Embedding(levels, ch)
        self.first = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.last = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, img, t):
        h = torch.relu(self.first(img) + self.time(t)[:, :, None, None])
        return self.last(torch.relu(self.mid(h)))


def images(n):
    yy, xx = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    c = 2 + 4 * torch.rand(n, 2, 1, 1)
    d = (yy - c[:, :1]) ** 2 + (xx - c[:, 1:]) ** 2
    return 2 * torch.exp(-d / 4) - 1


torch.manual_seed(2)
levels = 20
noiser = Noiser(levels, seed=17)
net = Denoiser(levels)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
data = images(512)
for step in range(150):
    batch = data[torch.randperm(512)[:32]]
    noisy, t, eps = noiser(batch)
    loss = nn.functional.mse_loss(net(noisy, t), eps)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        print(f"step {step + 1:3d} loss {loss.item():.4f}")

with torch.no_grad():
    noisy, t, eps = Noiser(levels, seed=900)(images(256))
    print(f"held-out loss {nn.functional.mse_loss(net(noisy, t), eps).item():.4f}")
