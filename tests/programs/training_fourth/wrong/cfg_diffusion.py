"""Class-conditional diffusion on four 2-D clusters with classifier-free guidance: during training the label is
replaced by a null label for a part of the batch, so that the network also learns the unconditional score."""
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

CLASSES, STEPS, NULL = 4, 40, 4
CENTRES = torch.tensor([[2.0, 2.0], [-2.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])
betas = torch.linspace(1e-3, 0.25, STEPS)
alphas = 1 - betas
alpha_bar = alphas.cumprod(0)


def batch(n):
    label = torch.randint(CLASSES, (n,))
    return CENTRES[label] + 0.3 * torch.randn(n, 2), label


class Denoiser(nn.Module):
    def __init__(self, width=64, drop_label=0.2):
        super().__init__()
        self.label = nn.Embedding(CLASSES + 1, 16)
        self.time = nn.Embedding(STEPS, 16)
        self.drop_label = drop_label
        self.net = nn.Sequential(
            nn.Linear(2 + 32, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x, t, label):
        if self.training:
            dropped = torch.rand(len(label)) < self.drop_label
            label = torch.where(dropped, torch.full_like(label, NULL), label)
        return self.net(torch.cat([x, self.time(t), self.label(label)], 1))


def add_noise(x, t, noise):
    scale = alpha_bar[t].unsqueeze(1)
    return scale.sqrt() * x + (1 - scale).sqrt() * noise


@torch.no_grad()
def sample(model, label, guidance):
    model.eval()
    x = torch.randn(len(label), 2)
    null = torch.full_like(label, NULL)
    for step in reversed(range(STEPS)):
        t = torch.full((len(label),), step)
        free = model(x, t, null)
        eps = free + guidance * (model(x, t, label) - free)
        x = (x - betas[step] / (1 - alpha_bar[step]).sqrt() * eps) / alphas[step].sqrt()
        if step:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


def train(model, iterations=700, preview_every=175):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    model.train()
    for i in range(iterations):
        x, label = batch(128)
        t = torch.randint(STEPS, (len(x),))
        noise = torch.randn_like(x)
        loss = F.mse_loss(model(add_noise(x, t, noise), t, label), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if i % preview_every == 0:
            label = torch.arange(CLASSES).repeat(16)
            spread = (sample(model, label, 1.0) - CENTRES[label]).norm(dim=1).mean().item()
            print(f"iteration {i:4d}  loss {loss.item():.3f}  preview distance {spread:.3f}")


@torch.no_grad()
def distance_to_data(points):
    return torch.cdist(points, CENTRES).min(1).values.mean().item()


def main():
    model = Denoiser()
    train(model)
    label = torch.arange(CLASSES).repeat(64)
    conditional = distance_to_data(sample(model, label, 1.0))
    unconditional = distance_to_data(sample(model, label, 0.0))
    guided = distance_to_data(sample(model, label, 2.0))
    print(f"distance to the nearest cluster centre: conditional {conditional:.3f}, "
          f"unconditional {unconditional:.3f}, guided {guided:.3f}")


if __name__ == "__main__":
    main()
