import torch
from torch import nn

torch.manual_seed(14)
FRAMES, JOINTS = 12, 5


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(JOINTS, 24, 5, padding=2)
        self.score = nn.Linear(24, 1)

    def forward(self, motion):
        h = nn.functional.leaky_relu(self.conv(motion.mT), 0.2)
        return self.score(h.mean(-1)).squeeze(-1)


def length(v):
    return v.square().sum(-1).add(1e-12).sqrt()


def smoothness(critic, real, fake):
    a = torch.rand(len(real), 1, 1)
    mid = torch.lerp(fake, real, a).requires_grad_()
    slope, = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)
    return (length(slope) - 1).pow(2).mean()


def walkers(n):
    t = torch.arange(FRAMES) / FRAMES * 6.28
    phase = torch.rand(n, 1, 1) * 6.28
    return torch.sin(t[None, :, None] + phase + torch.arange(JOINTS) * 0.5)


generator = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, FRAMES * JOINTS), nn.Unflatten(1, (FRAMES, JOINTS)))
critic = Critic()
opts = {
    "critic": torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9)),
    "generator": torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9)),
}
for step in range(1, 61):
    for _ in range(2):
        real = walkers(32)
        fake = generator(torch.randn(32, 8)).detach()
        gap = critic(fake).mean() - critic(real).mean()
        loss = gap + 10 * smoothness(critic, real, fake)
        opts["critic"].zero_grad()
        loss.backward()
        opts["critic"].step()
    g_loss = -critic(generator(torch.randn(32, 8))).mean()
    opts["generator"].zero_grad()
    g_loss.backward()
    opts["generator"].step()
    if step % 20 == 0:
        print(f"step {step} critic {loss.item():.4f} gap {gap.item():.4f} generator {g_loss.item():.4f}")
