"""ESRGAN-flavoured x2 super-resolution of synthetic micrographs: relativistic critic, averaged generator for testing."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
HR, BATCH, WARMUP, STEPS, EMA = 24, 8, 80, 160, 0.97
ADV_WEIGHT, PIXEL_WEIGHT = 5e-3, 1.0


def micrographs(n):
    """Cells with sharp membranes over a soft background."""
    gy, gx = torch.meshgrid(torch.arange(HR).float(), torch.arange(HR).float(), indexing="ij")
    img = 0.2 * F.interpolate(torch.rand(n, 1, 4, 4), size=(HR, HR), mode="bicubic", align_corners=False)[:, 0]
    for _ in range(3):
        cy, cx = HR * torch.rand(2, n, 1, 1)
        radius = torch.empty(n, 1, 1).uniform_(3, 7)
        dist = torch.hypot(gy - cy, gx - cx)
        img = img + 0.3 * (dist < radius) + 0.4 * ((dist - radius).abs() < 1.2)
    return img.clamp(0, 1)[:, None]


class DenseBlock(nn.Module):
    def __init__(self, width=16, growth=8):
        super().__init__()
        self.a = nn.Conv2d(width, growth, 3, padding=1)
        self.b = nn.Conv2d(width + growth, width, 3, padding=1)
        nn.init.zeros_(self.b.weight)
        nn.init.zeros_(self.b.bias)

    def forward(self, x):
        a = F.leaky_relu(self.a(x), 0.2)
        return x + 0.2 * self.b(torch.cat([x, a], 1))


class Generator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.block = DenseBlock(width)
        self.up = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.LeakyReLU(0.2))
        self.tail = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, lr):
        h = self.head(lr)
        for _ in range(3):
            h = self.block(h)
        base = F.interpolate(lr, scale_factor=2, mode="bicubic", align_corners=False)
        return base + self.tail(self.up(h))


def critic_net():
    sn = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(sn(nn.Conv2d(1, 16, 4, 2, 1)), nn.LeakyReLU(0.2), sn(nn.Conv2d(16, 32, 4, 2, 1)),
                         nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * (HR // 4) ** 2, 1))


def relativistic(a, b, target):
    return F.binary_cross_entropy_with_logits(a - b.mean(), torch.full_like(a, target))


def psnr(net, hr):
    with torch.no_grad():
        sr = net(F.avg_pool2d(hr, 2)).clamp(0, 1)
    return (-10 * torch.log10(((sr - hr) ** 2).mean((1, 2, 3)))).mean().item()


train_hr, test_hr = micrographs(240), micrographs(60)
gen, critic = Generator(), critic_net()
averaged = copy.deepcopy(gen).requires_grad_(False)
opt_g = torch.optim.Adam(gen.parameters(), lr=5e-3, betas=(0.9, 0.99))
opt_d = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.99))
print(f"bicubic {psnr(lambda x: F.interpolate(x, scale_factor=2, mode='bicubic', align_corners=False), test_hr):.2f} dB")

for step in range(STEPS):
    hr = train_hr[torch.randint(0, len(train_hr), (BATCH,))]
    sr = gen(F.avg_pool2d(hr, 2))

    critic.requires_grad_(False)
    loss_g = PIXEL_WEIGHT * F.l1_loss(sr, hr)
    if step >= WARMUP:
        real_score, fake_score = critic(hr).detach(), critic(sr)
        adv = 0.5 * (relativistic(real_score, fake_score, 0.0) + relativistic(fake_score, real_score, 1.0))
        loss_g = loss_g + ADV_WEIGHT * adv
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    critic.requires_grad_(True)
    opt_d.zero_grad()
    fake = sr.detach()
    loss_real = 0.5 * relativistic(critic(hr), critic(fake).detach(), 1.0)
    loss_real.backward()
    loss_fake = 0.5 * relativistic(critic(fake), critic(hr).detach(), 0.0)
    loss_fake.backward()
    opt_d.step()

    decay = min(EMA, (1 + step) / (10 + step))
    with torch.no_grad():
        for slow, fast in zip(averaged.parameters(), gen.parameters()):
            slow.lerp_(fast, 1 - decay)
    if step % 32 == 31:
        print(f"step {step + 1:3d}  g {loss_g.item():.4f}  d {(loss_real + loss_fake).item():.4f}  "
              f"raw {psnr(gen, test_hr):.2f} dB  averaged {psnr(averaged, test_hr):.2f} dB")
