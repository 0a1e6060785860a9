import torch
import torch.nn as nn


class Generator(nn.Module):
    def __init__(self, z_dim=4):
        super().__init__()
        self.z_dim = z_dim
        self.net = nn.Sequential(nn.Linear(z_dim, 32), nn.ReLU(), nn.Linear(32, 2))

    def sample(self, n):
        return self.net(torch.randn(n, self.z_dim))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def gradient_norm(critic, points):
    scores = critic(points)
    grads, = torch.autograd.grad(
        outputs=scores,
        inputs=points,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
    )
    return grads.norm(2, dim=1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.shape[0], 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    return (gradient_norm(critic, mixed) - 1).pow(2).mean()


def ring(n, radius=2.0):
    angle = torch.rand(n) * 2 * torch.pi
    pts = torch.stack([angle.cos(), angle.sin()], dim=1) * radius
    return pts + 0.05 * torch.randn(n, 2)


class Trainer:
    def __init__(self, lam=10.0, n_critic=3):
        self.gen, self.critic = Generator(), Critic()
        self.g_opt = torch.optim.Adam(self.gen.parameters(), lr=1e-3, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
        self.lam, self.n_critic = lam, n_critic

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.gen.sample(real.shape[0])
        gp = gradient_penalty(self.critic, real, fake)
        w_dist = self.critic(real).mean() - self.critic(fake).mean()
        loss = -w_dist + self.lam * gp
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return w_dist.item(), gp.item()

    def gen_step(self, n):
        loss = -self.critic(self.gen.sample(n)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(11)
    trainer = Trainer()
    for step in range(40):
        for _ in range(trainer.n_critic):
            w, gp = trainer.critic_step(ring(64))
        g = trainer.gen_step(64)
        if step % 8 == 0:
            print(f"step {step:3d} w {w:.4f} gp {gp:.4f} g {g:.4f}")
