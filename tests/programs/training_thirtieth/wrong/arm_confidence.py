"""NeuralUCB with a diagonal covariance (Zhou, Li and Gu, 2020) on a contextual bandit with a curved reward.

Each round shows one context per arm. A small network predicts the reward, the gradient of the prediction gives the
width of its confidence interval, and the arm with the largest upper bound is pulled.
"""
import math

import torch
from torch import nn

torch.manual_seed(5)

ARMS, DIM, ROUNDS = 5, 8, 160
RIDGE, WIDTH = 1.0, 0.4


class CurvedBandit:
    def __init__(self):
        direction = torch.randn(DIM)
        self.direction = direction / direction.norm()

    def contexts(self):
        x = torch.randn(ARMS, DIM)
        return x / x.norm(dim=1, keepdim=True)

    def means(self, contexts):
        return torch.cos(3 * contexts @ self.direction)

    def pull(self, mean):
        return mean + 0.1 * torch.randn(())


class RewardNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.inner = nn.Linear(DIM, hidden)
        self.outer = nn.Linear(hidden, 1, bias=False)
        self.scale = math.sqrt(hidden)

    def forward(self, x):
        return self.scale * self.outer(torch.relu(self.inner(x))).squeeze(-1)


class NeuralUCB:
    def __init__(self):
        self.net = RewardNet()
        count = sum(p.numel() for p in self.net.parameters())
        self.precision = RIDGE * torch.ones(count)
        self.seen, self.rewards = [], []

    def features(self, contexts):
        """Prediction of each arm and its gradient with respect to all weights."""
        self.net.zero_grad()
        predictions = self.net(contexts)
        rows = []
        for prediction in predictions:
            prediction.backward(retain_graph=True)
            rows.append(torch.cat([p.grad.flatten() for p in self.net.parameters()]))
        return predictions.detach(), torch.stack(rows) / math.sqrt(self.net.inner.out_features)

    def choose(self, contexts):
        predictions, gradients = self.features(contexts)
        spread = (RIDGE * gradients.pow(2) / self.precision).sum(dim=1).sqrt()
        arm = int(torch.argmax(predictions + WIDTH * spread))
        self.precision += gradients[arm].pow(2)
        return arm, spread

    def remember(self, context, reward):
        self.seen.append(context)
        self.rewards.append(reward)

    def fit(self, steps=15):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, weight_decay=1e-3)
        x, r = torch.stack(self.seen), torch.stack(self.rewards)
        for _ in range(steps):
            batch = torch.randint(len(x), (min(32, len(x)),))
            loss = (self.net(x[batch]) - r[batch]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()


bandit = CurvedBandit()
learner = NeuralUCB()
regret, counts, spreads = 0.0, torch.zeros(ARMS), torch.zeros(ARMS)

for round_ in range(1, ROUNDS + 1):
    contexts = bandit.contexts()
    means = bandit.means(contexts)
    arm, spread = learner.choose(contexts)
    learner.remember(contexts[arm], bandit.pull(means[arm]))

    regret += (means.max() - means[arm]).item()
    counts[arm] += 1
    spreads += spread
    if round_ % 5 == 0:
        loss = learner.fit()
    if round_ % 32 == 0:
        print(f"round {round_:4d}  fit {loss:.4f}  regret {regret:7.2f}  per round {regret / round_:.3f}")

test = torch.cat([bandit.contexts() for _ in range(40)])
with torch.no_grad():
    error = (learner.net(test) - bandit.means(test)).pow(2).mean().sqrt()
print(f"error of the fitted reward {error.item():.3f}")
