"""Wasserstein critic with bounded weights against a small generator."""
import torch
import torch.nn as nn

from constraints import accumulate, keep_within


class Critic(nn.Module):
    def __init__(self, n_in=6):
        super().__init__()
        self.first = nn.Linear(n_in, 24)
        self.last = nn.Linear(24, 1)

    def forward(self, x):
        hidden = torch.nn.functional.leaky_relu(self.first(x), 0.2)
        return self.last(hidden).mean()


def critic_round(critic, generator, optimizer, bound=0.05):
    real = torch.randn(32, 6) + 1.5
    with torch.no_grad():
        fake = generator(torch.randn(32, 3))
    loss_real = -critic(real)
    loss_fake = critic(fake)
    optimizer.zero_grad()
    gap = accumulate(loss_real)
    gap += accumulate(loss_fake)
    keep_within(critic, bound)
    optimizer.step()
    keep_within(critic, bound)
    return gap


def main():
    torch.manual_seed(14)
    critic, generator = Critic(), nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 6))
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
    for _ in range(2):
        for _ in range(3):
            gap = critic_round(critic, generator, opt_c)
        loss = -critic(generator(torch.randn(32, 3)))
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        print(gap, loss.item())


if __name__ == "__main__":
    main()
