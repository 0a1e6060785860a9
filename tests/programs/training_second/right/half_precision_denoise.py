import math

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64)
        )

    def forward(self, x):
        return x + self.net(x)


class Trainer:
    def __init__(self, model, lr=8e-3, max_norm=0.05):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        self.max_norm = max_norm

    def step(self, noisy, clean):
        with torch.autocast("cpu", dtype=torch.float16):
            output = self.model(noisy)
        loss = (output.float() - clean).abs().mean()
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item(), norm.item()


def tones(count, generator):
    t = torch.arange(64) / 64
    pitch = 1 + 4 * torch.rand(count, 1, generator=generator)
    phase = torch.rand(count, 1, generator=generator)
    return torch.sin(2 * math.pi * (pitch * t + phase))


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(3)
    trainer = Trainer(Denoiser())
    for step in range(60):
        clean = tones(32, generator)
        noisy = clean + 0.4 * torch.randn(clean.shape, generator=generator)
        loss, norm = trainer.step(noisy, clean)
        if step % 20 == 19:
            print(f"step {step + 1} l1 {loss:.4f} norm {norm:.4f} scale {trainer.scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
