"""NeRF (Mildenhall et al., 2020) in flatland: a 2-D scene seen by 1-D cameras, with coarse and fine networks."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(30)

NEAR, FAR = 1.0, 5.0
N_COARSE, N_FINE = 24, 24
RAYS, STEPS = 96, 350
DISCS = torch.tensor([[0.6, 0.2, 0.45], [-0.5, 0.5, 0.35], [-0.2, -0.7, 0.4]])
COLORS = torch.tensor([[0.9, 0.2, 0.1], [0.1, 0.8, 0.3], [0.2, 0.3, 0.9]])


def camera_rays(angle, width=32, fov=0.75):
    origin = 3.0 * torch.stack([torch.cos(angle), torch.sin(angle)], -1)
    beta = angle[:, None] + math.pi + torch.linspace(-fov / 2, fov / 2, width)
    dirs = torch.stack([torch.cos(beta), torch.sin(beta)], -1)
    return origin[:, None].expand_as(dirs).reshape(-1, 2), dirs.reshape(-1, 2)


def render_truth(o, d):
    """Colour of the first opaque disc on each ray, black where there is none."""
    rel = o[:, None] - DISCS[None, :, :2]
    b = (rel * d[:, None]).sum(-1)
    disc = b ** 2 - (rel ** 2).sum(-1) + DISCS[:, 2] ** 2
    t = torch.where(disc > 0, -b - disc.clamp(min=0).sqrt(), torch.full_like(b, 1e6))
    near, index = t.min(-1)
    return torch.where((near < 1e5)[:, None], COLORS[index], torch.zeros(len(o), 3))


class Radiance(nn.Module):
    def __init__(self, n_freq=4, width=48):
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(n_freq) * math.pi / 2)
        self.body = nn.Sequential(nn.Linear(4 * n_freq, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.sigma, self.rgb = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, p):
        enc = (p[..., None] * self.freq).flatten(-2)
        h = self.body(torch.cat([enc.sin(), enc.cos()], -1))
        return F.softplus(self.sigma(h).squeeze(-1) - 1), torch.sigmoid(self.rgb(h))


def composite(net, o, d, z):
    sigma, rgb = net(o[:, None] + d[:, None] * z[..., None])
    delta = torch.cat([z[:, 1:] - z[:, :-1], torch.full_like(z[:, :1], FAR / N_COARSE)], -1)
    alpha = 1 - torch.exp(-sigma * delta)
    through = torch.cumprod(torch.cat([torch.ones_like(z[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    weights = alpha * through
    return (weights[..., None] * rgb).sum(1), weights


def sample_pdf(z, weights, n):
    mids = 0.5 * (z[:, 1:] + z[:, :-1])
    w = weights[:, 1:-1] + 1e-5
    cdf = torch.cumsum(w / w.sum(-1, keepdim=True), -1)
    cdf = torch.cat([torch.zeros_like(cdf[:, :1]), cdf], -1)
    u = torch.rand(len(z), n)
    hi = torch.searchsorted(cdf, u, right=True).clamp(1, cdf.size(1) - 1)
    c0, c1 = cdf.gather(1, hi - 1), cdf.gather(1, hi)
    m0, m1 = mids.gather(1, hi - 1), mids.gather(1, hi)
    return m0 + (u - c0) / (c1 - c0).clamp(min=1e-5) * (m1 - m0)


def render(coarse, fine, o, d):
    edges = torch.linspace(NEAR, FAR, N_COARSE + 1)
    z = edges[:-1] + torch.rand(len(o), N_COARSE) * (FAR - NEAR) / N_COARSE
    rgb_c, weights = composite(coarse, o, d, z)
    z_new = sample_pdf(z, weights.detach(), N_FINE)
    z_all = torch.cat([z, z_new], -1).sort(-1).values
    rgb_f, _ = composite(fine, o, d, z_all)
    return rgb_c, rgb_f


rays_o, rays_d = camera_rays(torch.arange(24) * 2 * math.pi / 24)
colors = render_truth(rays_o, rays_d)
test_o, test_d = camera_rays(torch.arange(6) * 2 * math.pi / 6 + 0.13)
test_colors = render_truth(test_o, test_d)

coarse, fine = Radiance(), Radiance()
params = [*coarse.parameters(), *fine.parameters()]
opt = torch.optim.Adam(params, lr=5e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.1 ** (1 / STEPS))
for step in range(STEPS):
    idx = torch.randint(0, len(rays_o), (RAYS,))
    rgb_c, rgb_f = render(coarse, fine, rays_o[idx], rays_d[idx])
    loss = F.mse_loss(rgb_c, colors[idx]) + F.mse_loss(rgb_f, colors[idx])
    opt.zero_grad()
    loss.backward()
    opt.step()
    decay.step()
    if (step + 1) % 70 == 0:
        with torch.no_grad():
            out_c, out_f = render(coarse, fine, test_o, test_d)
            psnr = [-10 * F.mse_loss(out, test_colors).log10().item() for out in (out_c, out_f)]
        print(f"step {step + 1:4d}  loss {loss.item():.4f}  test psnr coarse {psnr[0]:.2f}  fine {psnr[1]:.2f}")
