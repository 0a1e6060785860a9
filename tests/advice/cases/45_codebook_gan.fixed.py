"""Autoencoder with an adversarial loss on its reconstructions."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(16, 6)
        self.dec = nn.Linear(6, 16)

    def forward(self, x):
        return self.dec(F.relu(self.enc(x)))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Trainer:
    def __init__(self):
        self.auto, self.critic = AutoEncoder(), Critic()
        self.opt_auto = torch.optim.Adam(self.auto.parameters(), lr=1e-3)
        self.opt_critic = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def step(self, x, weight=0.1):
        self.opt_auto.zero_grad()
        recon = self.auto(x)
        gen_loss = F.mse_loss(recon, x) - weight * self.critic(recon).mean()
        gen_loss.backward()
        self.opt_auto.step()

        real, fake = self.critic(x), self.critic(recon.detach())
        critic_loss = 0.5 * (F.relu(1 - real).mean() + F.relu(1 + fake).mean())
        self.opt_critic.zero_grad()
        critic_loss.backward()
        self.opt_critic.step()
        return gen_loss.item(), critic_loss.item()


def main():
    torch.manual_seed(44)
    trainer = Trainer()
    for it in range(4):
        print(it, trainer.step(torch.randn(12, 16)))


if __name__ == "__main__":
    main()
