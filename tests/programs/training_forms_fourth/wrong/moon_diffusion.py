import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def linear_beta_schedule(timesteps, start=1e-4, end=0.05):
    return torch.linspace(start, end, timesteps)


def extract(values, t, x_shape):
    out = values.gather(0, t)
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=64, emb=16):
        super().__init__()
        self.emb = emb
        self.net = nn.Sequential(
            nn.Linear(dim + emb, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, dim)
        )

    def forward(self, x, t):
        half = self.emb // 2
        freqs = torch.exp(-math.log(1000.0) * torch.arange(half) / half)
        args = t[:, None].float() * freqs[None]
        return self.net(torch.cat([x, args.sin(), args.cos()], dim=-1))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=100):
        super().__init__()
        self.model, self.timesteps = model, timesteps
        betas = linear_beta_schedule(timesteps)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas_cumprod", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x_start, t, noise):
        signal_rate = extract(self.alphas_cumprod, t, x_start.shape)
        noise_rate = extract(1.0 - self.alphas_cumprod, t, x_start.shape)
        return signal_rate * x_start + noise_rate * noise

    def p_losses(self, x_start):
        t = torch.randint(0, self.timesteps, (x_start.size(0),))
        noise = torch.randn_like(x_start)
        x_noisy = self.q_sample(x_start, t, noise)
        return F.mse_loss(self.model(x_noisy, t), noise)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.timesteps)):
            t = torch.full((n,), i)
            eps = self.model(x, t)
            beta, abar = self.betas[i], self.alphas_cumprod[i]
            x = (x - beta / (1 - abar).sqrt() * eps) / (1 - beta).sqrt()
            if i > 0:
                x = x + beta.sqrt() * torch.randn_like(x)
        return x


angle = torch.rand(1024) * math.pi
points = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(1024, 2)
diffusion = GaussianDiffusion(Denoiser())
optimizer = torch.optim.AdamW(diffusion.parameters(), lr=2e-3)
for step in range(1, 601):
    loss = diffusion.p_losses(points[torch.randint(0, 1024, (128,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        print(f"step {step} loss {loss.item():.4f}")
radius = diffusion.sample(500).norm(dim=1)
print(f"sampled radius mean {radius.mean():.3f} std {radius.std():.3f}")
