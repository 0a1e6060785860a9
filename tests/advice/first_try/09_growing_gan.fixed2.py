import torch
import torch.nn as nn
import torch.nn.functional as F


class GrowingGenerator(nn.Module):
    def __init__(self, z_dim=8, channels=12):
        super().__init__()
        self.z_dim, self.channels = z_dim, channels
        self.stem = nn.Linear(z_dim, channels * 4)
        self.blocks = nn.ModuleList()
        self.to_signal = nn.Conv1d(channels, 1, 1)

    def grow(self):
        self.blocks.append(nn.Sequential(nn.Conv1d(self.channels, self.channels, 3, padding=1), nn.ReLU()))
        self.to_signal = nn.Conv1d(self.channels, 1, 1)

    def forward(self, z):
        h = F.relu(self.stem(z)).view(-1, self.channels, 4)
        for block in self.blocks:
            h = block(F.interpolate(h, scale_factor=2))
        return self.to_signal(h)


class Discriminator(nn.Module):
    def __init__(self, length=16):
        super().__init__()
        self.length = length
        self.net = nn.Sequential(nn.Linear(length, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        x = F.interpolate(x, size=self.length, mode="linear", align_corners=False)
        return self.net(x.squeeze(1))


def make_opt(module, lr=2e-3):
    return torch.optim.Adam(module.parameters(), lr=lr, betas=(0.5, 0.99))


class Trainer:
    def __init__(self):
        self.gen, self.disc = GrowingGenerator(), Discriminator()
        self.opt_g, self.opt_d = make_opt(self.gen), make_opt(self.disc)

    def on_stage_end(self, stage):
        if stage < 2:
            self.gen.grow()
            new = list(self.gen.blocks[-1].parameters()) + list(self.gen.to_signal.parameters())
            self.opt_g.add_param_group({"params": new})

    def batch(self, size, n=48):
        t = torch.linspace(0, 6.28, size)
        x = torch.sin(t * (1 + torch.rand(n, 1)) + torch.rand(n, 1)).unsqueeze(1)
        return x, torch.randn(n, self.gen.z_dim)

    def step(self, real, z):
        fake = self.gen(z)
        d_loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake.detach())).mean()
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()

        g_loss = F.softplus(-self.disc(fake)).mean()
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()

    def fit(self, stages=3, steps=12):
        for stage in range(stages):
            for _ in range(steps):
                real, z = self.batch(size=4 * 2 ** stage)
                d, g = self.step(real, z)
            print(f"stage {stage} size {real.shape[-1]} d {d:.4f} g {g:.4f}")
            self.on_stage_end(stage)


if __name__ == "__main__":
    torch.manual_seed(9)
    Trainer().fit()
