import torch
import torch.nn as nn
import torch.nn.functional as F


class CondGenerator(nn.Module):
    def __init__(self, n_classes=3, z_dim=6):
        super().__init__()
        self.z_dim = z_dim
        self.embed = nn.Embedding(n_classes, 4)
        self.fc1 = nn.Linear(z_dim + 4, 32)
        self.fc2 = nn.Linear(32, 2)

    def forward(self, labels):
        z = torch.randn(labels.shape[0], self.z_dim)
        h = self.fc1(torch.cat([z, self.embed(labels)], dim=1))
        h.relu_()
        return self.fc2(h)


class CondDiscriminator(nn.Module):
    def __init__(self, n_classes=3):
        super().__init__()
        self.embed = nn.Embedding(n_classes, 4)
        self.fc1 = nn.Linear(2 + 4, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x, labels):
        h = self.fc1(torch.cat([x, self.embed(labels)], dim=1))
        return self.fc2(F.leaky_relu_(h, 0.2)).squeeze(1)


def bce(logits, value):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, value))


class SimultaneousGAN:
    def __init__(self):
        self.gen, self.disc = CondGenerator(), CondDiscriminator()
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=2e-3)
        self.opt_d = torch.optim.Adam(self.disc.parameters(), lr=2e-3)

    def step(self, real, labels):
        fake = self.gen(labels)
        fake_logits = self.disc(fake, labels)
        real_logits = self.disc(real, labels)
        d_loss = 0.5 * (bce(real_logits, 0.9) + bce(fake_logits, 0.0))
        g_loss = bce(fake_logits, 1.0)

        self.opt_d.zero_grad()
        self.opt_g.zero_grad()
        d_loss.backward(inputs=list(self.disc.parameters()), retain_graph=True)
        g_loss.backward(inputs=list(self.gen.parameters()))
        self.opt_d.step()
        self.opt_g.step()
        return d_loss.item(), g_loss.item()


def batch(n=96):
    labels = torch.randint(0, 3, (n,))
    centers = torch.tensor([[0.0, 1.5], [1.3, -0.75], [-1.3, -0.75]])
    return centers[labels] + 0.1 * torch.randn(n, 2), labels


if __name__ == "__main__":
    torch.manual_seed(2)
    gan = SimultaneousGAN()
    for it in range(40):
        d, g = gan.step(*batch())
        if it % 8 == 0:
            print(f"it {it:2d} d {d:.4f} g {g:.4f}")
