import torch
from torch import nn
import torch.nn.functional as F


class Denoise(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 48), nn.GELU(), nn.Linear(48, n))

    def forward(self, x):
        return x + self.net(x)


class Gain(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return F.softplus(self.net(x))


class ScaledStep:
    def __init__(self, optimizers, max_norm, scale):
        self.optimizers, self.max_norm = optimizers, max_norm
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=20)

    def __call__(self, loss):
        for opt in self.optimizers:
            opt.zero_grad()
        self.scaler.scale(loss).backward()
        norms = []
        for opt in self.optimizers:
            self.scaler.unscale_(opt)
            params = [p for group in opt.param_groups for p in group["params"]]
            norms.append(nn.utils.clip_grad_norm_(params, self.max_norm).item())
        for opt in self.optimizers:
            self.scaler.step(opt)
        self.scaler.update()
        return norms


def signals(n, g):
    t = torch.linspace(0, 6.28, 32)
    clean = torch.sin(t * (1 + 2 * torch.rand(n, 1, generator=g))) * (0.5 + torch.rand(n, 1, generator=g))
    return clean + 0.4 * torch.randn(n, 32, generator=g), clean


def train(denoise, gain, noisy, clean, epochs=5):
    step = ScaledStep([torch.optim.SGD(denoise.parameters(), lr=0.2), torch.optim.SGD(gain.parameters(), lr=0.05)], 1.0, 2.0**12)
    for epoch in range(epochs):
        for a, b in zip(noisy.split(32), clean.split(32)):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = denoise(a) * gain(a)
            loss = F.mse_loss(out.float(), b)
            norms = step(loss)
        print(f"epoch {epoch} loss {loss.item():.4f} norms {[round(n, 3) for n in norms]} scale {step.scaler.get_scale():.0f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    noisy, clean = signals(320, torch.Generator().manual_seed(5))
    train(Denoise(), Gain(), noisy, clean)
