"""VAE for 10x10 floor-tile textures, trained with momentum SGD, warm-up and a KL ramp."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Optimizer

SEED = 3
SIZE = 10
LATENT = 6
EPOCHS = 40
BATCH = 64


def make_tiles(n=1536):
    g = torch.Generator().manual_seed(SEED)
    axis = torch.arange(SIZE) / SIZE
    freq = torch.rand(n, 1, 1, generator=g) * 0.5 + 0.5
    angle = torch.rand(n, 1, 1, generator=g) * math.pi
    phase = torch.rand(n, 1, 1, generator=g) * math.pi
    wave = torch.sin(2 * math.pi * freq * (angle.cos() * axis[:, None] + angle.sin() * axis[None]) + phase)
    return ((wave + 0.05 * torch.randn(n, SIZE, SIZE, generator=g)) * 0.4 + 0.5).clamp(0, 1).flatten(1)


class CentralizedSGD(Optimizer):
    """SGD with gradient centralization for weight matrices, momentum and optional weight decay."""

    def __init__(self, params, lr, momentum=0.9, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                if group["weight_decay"]:
                    grad = grad.add(p, alpha=group["weight_decay"])
                if grad.dim() > 1:
                    grad.sub_(grad.mean(dim=1, keepdim=True))
                state = self.state[p]
                if "momentum_buffer" not in state:
                    buf = state["momentum_buffer"] = grad
                else:
                    buf = state["momentum_buffer"]
                    buf.mul_(group["momentum"]).add_(grad)
                p.add_(buf, alpha=-group["lr"])


class TileVAE(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.to_mean = nn.Linear(width, LATENT)
        self.to_logvar = nn.Linear(width, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, width), nn.SiLU(), nn.Linear(width, SIZE * SIZE))

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h).clamp(-8, 4)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(z), mean, logvar


def elbo_terms(model, x):
    recon, mean, logvar = model(x)
    rec = F.mse_loss(recon, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum(1).mean()
    return rec, kl


def main():
    torch.manual_seed(SEED)
    tiles = make_tiles()
    train, test = tiles[:1280], tiles[1280:]
    model = TileVAE()
    optimizer = CentralizedSGD(model.parameters(), lr=1e-2)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 40))
    grad_norm = 0.0
    for epoch in range(EPOCHS):
        beta = 0.02 * min(1.0, epoch / 10)
        for index in torch.randperm(len(train)).split(BATCH):
            optimizer.zero_grad(set_to_none=False)
            rec, kl = elbo_terms(model, train[index])
            loss = rec + beta * kl
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 20.0).item()
            optimizer.step()
            warmup.step()
        if (epoch + 1) % 10 == 0:
            with torch.no_grad():
                rec, kl = elbo_terms(model, test)
            print(f"epoch {epoch + 1}: test reconstruction {rec:.3f} kl {kl:.2f} grad norm {grad_norm:.2f}")
    return model, optimizer, rec.item()


if __name__ == "__main__":
    model, optimizer, final = main()
