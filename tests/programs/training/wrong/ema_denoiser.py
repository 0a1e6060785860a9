"""Denoiser evaluated with an exponential moving average of its weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = {name: p.data for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p.data, alpha=1 - self.decay)

    @torch.no_grad()
    def copy_to(self, model):
        for name, p in model.named_parameters():
            p.copy_(self.shadow[name])


class Denoiser(nn.Module):
    def __init__(self, dim=2, width=48):
        super().__init__()
        self.inp = nn.Linear(dim + 1, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, dim)

    def forward(self, x, sigma):
        h = F.silu(self.inp(torch.cat([x, sigma.log()], dim=1)))
        h = F.silu(self.mid(h))
        return self.out(h)


def moons(n):
    t = torch.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], dim=1)


def denoising_loss(model, clean):
    sigma = 0.05 + 0.9 * torch.rand(len(clean), 1)
    noise = torch.randn_like(clean)
    return F.mse_loss(model(clean + sigma * noise, sigma), noise)


def main():
    torch.manual_seed(97)
    model = Denoiser()
    ema = EMA(model)
    averaged = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    data = moons(1024)
    for step in range(150):
        batch = data[torch.randint(len(data), (64,))]
        loss = denoising_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        if step % 50 == 49:
            print(f"step {step}: loss {loss.item():.4f}")
    ema.copy_to(averaged)
    with torch.no_grad():
        print(f"averaged model {denoising_loss(averaged, data):.4f} raw model {denoising_loss(model, data):.4f}")
    return model, ema, averaged


if __name__ == "__main__":
    main()
