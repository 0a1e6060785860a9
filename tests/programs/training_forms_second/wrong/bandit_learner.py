import torch
from torch import nn
from torch.distributions import Categorical


class Learner:
    def __init__(self, context, arms, lr=3e-3):
        self.net = nn.Sequential(nn.Linear(context, 32), nn.ELU(), nn.Linear(32, arms))
        self.lr = lr
        self.baseline = 0.0

    def choose(self, ctx):
        with torch.no_grad():
            dist = Categorical(logits=self.net(ctx))
            arm = dist.sample()
            return arm, dist.log_prob(arm)

    def update(self, ctx, arm, old, reward, passes=2):
        opt = torch.optim.Adam(self.net.parameters(), lr=self.lr)
        gain = reward - self.baseline
        self.baseline = 0.9 * self.baseline + 0.1 * reward.mean().item()
        for _ in range(passes):
            dist = Categorical(logits=self.net(ctx))
            ratio = torch.exp(dist.log_prob(arm) - old)
            clipped = ratio.clamp(0.8, 1.2)
            loss = -torch.minimum(ratio * gain, clipped * gain).mean() - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()


class Clicks:
    def __init__(self, context, arms):
        self.table = torch.randn(context, arms)

    def contexts(self, n):
        return torch.randn(n, len(self.table))

    def pull(self, ctx, arm):
        p = torch.sigmoid(ctx @ self.table).gather(1, arm.unsqueeze(1)).squeeze(1)
        return torch.bernoulli(p)


if __name__ == "__main__":
    torch.manual_seed(17)
    site = Clicks(6, 5)
    learner = Learner(6, 5)
    window = []
    for t in range(200):
        ctx = site.contexts(64)
        arm, old = learner.choose(ctx)
        reward = site.pull(ctx, arm)
        loss = learner.update(ctx, arm, old, reward)
        window.append(reward.mean().item())
        if (t + 1) % 50 == 0:
            print(f"round {t + 1} click rate {sum(window[-50:]) / 50:.4f} loss {loss:.4f}")
