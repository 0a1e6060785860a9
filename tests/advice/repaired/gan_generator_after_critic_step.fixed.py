"""expect: saved-tensor-modified-inplace

The generator's loss is computed early, for the log, and used after the critic has moved.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Generator(nn.Module):
    def __init__(self, latent=4, width=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.hidden = nn.Linear(2, width)
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        h = F.leaky_relu(self.hidden(x), 0.2)
        return self.score(h)  # role: saved_here


class Trainer:
    def __init__(self):
        self.generator, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def losses(self, real):
        fake = self.generator(torch.randn(real.shape[0], 4))
        critic_loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
        return fake, critic_loss

    def step(self, real):
        fake, critic_loss = self.losses(real)
        self.opt_c.zero_grad()
        critic_loss.backward()
        self.opt_c.step()  # role: modified_here
        generator_loss = -self.critic(fake).mean()
        self.opt_g.zero_grad()
        generator_loss.backward()  # role: needed_here
        self.opt_g.step()
        return generator_loss.item(), critic_loss.item()


torch.manual_seed(0)
trainer = Trainer()
for batch in torch.randn(3, 16, 2):
    print("%.3f %.3f" % trainer.step(batch))
