"""Hinge-loss critic whose layers are normalised by their largest singular value."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LipschitzLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * 0.2)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.register_buffer("u", F.normalize(torch.randn(n_out), dim=0))

    def scaled_weight(self):
        with torch.no_grad():
            v = F.normalize(self.weight.t() @ self.u, dim=0)
            self.u.copy_(F.normalize(self.weight @ v, dim=0))
        response = self.weight @ v
        sigma = torch.dot(self.u.clone(), response)
        return self.weight / sigma

    def forward(self, x):
        return F.linear(x, self.scaled_weight(), self.bias)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(LipschitzLinear(8, 16), nn.LeakyReLU(0.1), LipschitzLinear(16, 1))

    def forward(self, x):
        return self.layers(x)


def critic_step(critic, optimizer, real, fake):
    score_real = critic(real)
    score_fake = critic(fake.detach())
    loss = F.relu(1 - score_real).mean() + F.relu(1 + score_fake).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(8)
    critic = Critic()
    generator = nn.Linear(4, 8)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
    for _ in range(3):
        print(critic_step(critic, optimizer, torch.randn(16, 8), generator(torch.randn(16, 4))))
