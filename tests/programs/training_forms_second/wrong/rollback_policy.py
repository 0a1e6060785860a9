import copy

import torch
from torch import nn

torch.manual_seed(6)


class Bandit:
    def __init__(self, context=8, arms=5):
        self.w = torch.randn(context, arms)

    def contexts(self, n):
        return torch.randn(n, self.w.size(0))

    def pay(self, c, arm):
        return (c @ self.w).gather(1, arm[:, None]).squeeze(1) + 0.3 * torch.randn(len(c))


class Snapshot:
    def __init__(self, policy, optimizer):
        self.policy, self.optimizer = policy, optimizer
        self.best = float("-inf")
        self.kept = None

    def save(self, reward):
        self.best = reward
        self.kept = {
            "policy": copy.deepcopy(self.policy.state_dict()),
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self):
        self.policy.load_state_dict(self.kept["policy"])
        self.optimizer.load_state_dict(self.kept["optimizer"])


def update(policy, optimizer, bandit, n=64):
    c = bandit.contexts(n)
    dist = torch.distributions.Categorical(logits=policy(c))
    arm = dist.sample()
    pay = bandit.pay(c, arm)
    gain = (pay - pay.mean()) / (pay.std() + 1e-6)
    loss = -(dist.log_prob(arm) * gain).mean() - 0.01 * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return pay.mean().item()


bandit = Bandit()
policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 5))
optimizer = torch.optim.RMSprop(policy.parameters(), lr=5e-3, momentum=0.9)
snapshot = Snapshot(policy, optimizer)

for round_ in range(15):
    rewards = [update(policy, optimizer, bandit) for _ in range(8)]
    mean = sum(rewards) / len(rewards)
    if mean > snapshot.best:
        snapshot.save(mean)
    elif mean < snapshot.best - 0.05:
        print(f"round {round_ + 1}: {mean:.3f} is below {snapshot.best:.3f}, going back")
        snapshot.restore()
        continue
    print(f"round {round_ + 1}: {mean:.3f}")
with torch.no_grad():
    c = bandit.contexts(500)
    print("greedy reward", bandit.pay(c, policy(c).argmax(1)).mean().item())
