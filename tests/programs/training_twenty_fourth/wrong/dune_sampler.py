"""Small DDPM on a 2-D point cloud (sand ripples); samples come from the EMA weights."""
import argparse
import copy
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = 40
BETAS = torch.linspace(1e-3, 0.2, STEPS)
ALPHAS = 1.0 - BETAS
ALPHA_BAR = ALPHAS.cumprod(0)


def ripples(n, gen):
    """Three parallel sine-shaped crests."""
    u = 4 * torch.rand(n, generator=gen) - 2
    crest = torch.randint(-1, 2, (n,), generator=gen)
    v = 1.2 * crest + 0.35 * torch.sin(math.pi * u)
    return torch.stack([u, v], dim=1) + 0.05 * torch.randn(n, 2, generator=gen)


class Denoiser(nn.Module):
    def __init__(self, width=96, n_freq=8):
        super().__init__()
        self.register_buffer("freq", torch.pi * 2.0 ** torch.arange(n_freq // 2))
        self.net = nn.Sequential(nn.Linear(2 + n_freq, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        angle = (t.float() / STEPS)[:, None] * self.freq
        return self.net(torch.cat([x, angle.sin(), angle.cos()], dim=1))


class Trainer:
    def __init__(self, data, args):
        self.data, self.args = data, args
        self.model = Denoiser()
        self.ema = copy.deepcopy(self.model).requires_grad_(False)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=args.lr, weight_decay=0.0)
        self.step = 0

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, path)

    def resume(self, path):
        ckpt = torch.load(path)
        self.model.load_state_dict(ckpt["model"])
        self.opt.load_state_dict(ckpt["opt"])
        self.step = ckpt["step"]

    @torch.no_grad()
    def update_ema(self):
        for slow, fast in zip(self.ema.parameters(), self.model.parameters()):
            slow.lerp_(fast, 1.0 - self.args.ema_decay)

    def fit(self, until):
        running = 0.0
        while self.step < until:
            x0 = self.data[torch.randint(len(self.data), (self.args.batch,))]
            t = torch.randint(STEPS, (len(x0),))
            noise = torch.randn_like(x0)
            ab = ALPHA_BAR[t][:, None]
            loss = F.mse_loss(self.model(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t), noise)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.update_ema()
            self.step += 1
            running = loss.item() if self.step == 1 else 0.98 * running + 0.02 * loss.item()
        print(f"step {self.step}  loss {running:.4f}")

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for i in reversed(range(STEPS)):
            eps = self.ema(x, torch.full((n,), i))
            x = (x - BETAS[i] / (1 - ALPHA_BAR[i]).sqrt() * eps) / ALPHAS[i].sqrt()
            if i > 0:
                x = x + BETAS[i].sqrt() * torch.randn_like(x)
        return x


def distance_to_data(samples, data):
    return torch.cdist(samples, data).min(dim=1).values.mean().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--ema-decay", type=float, default=0.997)
    args, _ = p.parse_known_args()
    torch.manual_seed(8)
    data = ripples(4000, torch.Generator().manual_seed(8))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        trainer = Trainer(data, args)
        trainer.fit(until=900)  # first job, ends with the queue's time limit
        trainer.save(path)
        trainer = Trainer(data, args)
        trainer.resume(path)
    trainer.fit(until=1500)
    print(f"sample distance to data {distance_to_data(trainer.sample(600), data):.4f}")
