import math

import torch
from torch import nn


def moons(n, generator):
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    pick = (torch.rand(n, 1, generator=generator) < 0.5).float()
    points = pick * upper + (1 - pick) * lower
    return points + 0.05 * torch.randn(n, 2, generator=generator)


class Denoiser(nn.Module):
    def __init__(self, width=64, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.inp = nn.Linear(2, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)
        self.act = nn.SiLU()

    def forward(self, x, t):
        h = self.act(self.inp(x) + self.time(t))
        h = h + self.act(self.mid(h))
        return self.out(h)


class Diffusion:
    def __init__(self, steps=50):
        self.steps = steps
        self.alpha_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.05, steps), 0)

    def loss(self, model, x0):
        t = torch.randint(0, self.steps, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.alpha_bar[t].unsqueeze(1)
        noisy = a.sqrt() * x0 + (1 - a).sqrt() * noise
        return (model(noisy, t) - noise).pow(2).mean()


def validate(model, diffusion, data, batch=64):
    model.eval()
    total = 0.0
    chunks = data.split(batch)
    for chunk in chunks:
        total += diffusion.loss(model, chunk)
    model.train()
    return total / len(chunks)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(5)
    train, valid = moons(512, generator), moons(256, generator)
    model, diffusion = Denoiser(), Diffusion()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    history = []
    for epoch in range(12):
        for idx in torch.randperm(len(train)).split(128):
            loss = diffusion.loss(model, train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(validate(model, diffusion, valid))
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} train {loss.item():.4f} valid {history[-1]:.4f}")
    print(f"best valid {min(history):.4f}")
    return model, history


if __name__ == "__main__":
    model, history = main()
