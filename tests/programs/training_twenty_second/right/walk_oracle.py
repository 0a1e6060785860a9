"""TD(lambda) with eligibility traces on the 19-state random walk (Sutton & Barto, sections 12.2 and 12.7)."""
import numpy as np
import torch
import torch.nn as nn

N_STATES = 19


class RandomWalk:
    """Start in the middle, step left or right; -1 at the left end, +1 at the right end."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def episode(self):
        s, done = N_STATES // 2, False
        while not done:
            nxt = s + (1 if self.rng.random() < 0.5 else -1)
            done = nxt < 0 or nxt >= N_STATES
            reward = 0.0 if not done else (1.0 if nxt >= N_STATES else -1.0)
            yield s, reward, nxt, done
            s = nxt


class ValueNet(nn.Module):
    """Overlapping radial features of the position, then a linear read-out and a small hidden path."""

    def __init__(self, n_features=12, hidden=16):
        super().__init__()
        self.register_buffer("centers", torch.linspace(-1, 1, n_features))
        self.width = 2.0 / (n_features - 1)
        self.linear = nn.Linear(n_features, 1)
        self.hidden = nn.Sequential(nn.Linear(n_features, hidden), nn.Tanh(), nn.Linear(hidden, 1, bias=False))

    def features(self, s):
        pos = torch.as_tensor(2.0 * s / (N_STATES - 1) - 1.0, dtype=torch.float32)
        return torch.exp(-0.5 * ((pos - self.centers) / self.width) ** 2)

    def forward(self, s):
        phi = self.features(s)
        return (self.linear(phi) + 0.1 * self.hidden(phi)).squeeze(-1)


class TDLambda:
    def __init__(self, net, alpha, gamma, lam):
        self.net, self.alpha, self.gamma, self.lam = net, alpha, gamma, lam
        self.traces = [torch.zeros_like(p) for p in net.parameters()]

    def reset(self):
        for z in self.traces:
            z.zero_()

    def observe(self, s, reward, nxt, done):
        value = self.net(s)
        grads = torch.autograd.grad(value, list(self.net.parameters()))
        with torch.no_grad():
            bootstrap = 0.0 if done else self.net(nxt).item()
            delta = reward + self.gamma * bootstrap - value.item()
            for p, z, g in zip(self.net.parameters(), self.traces, grads):
                z.mul_(self.gamma * self.lam).add_(g)
                p.add_(z, alpha=self.alpha * delta)
        return delta


def true_values():
    return torch.linspace(-0.9, 0.9, N_STATES)


@torch.no_grad()
def rms_error(net):
    v = torch.stack([net(s) for s in range(N_STATES)])
    return (v - true_values()).pow(2).mean().sqrt().item()


def main():
    torch.manual_seed(0)
    net = ValueNet()
    nn.init.zeros_(net.linear.weight)
    nn.init.zeros_(net.linear.bias)
    agent = TDLambda(net, alpha=0.02, gamma=1.0, lam=0.8)
    walk = RandomWalk(seed=1)
    history = [rms_error(net)]
    for episode in range(60):
        agent.reset()
        total, steps = 0.0, 0
        for transition in walk.episode():
            total += abs(agent.observe(*transition))
            steps += 1
        history.append(rms_error(net))
        agent.alpha *= 0.97
        if episode % 15 == 14:
            print(f"episode {episode + 1:2d}  steps {steps:4d}  mean |delta| {total / steps:.3f}  rms error {history[-1]:.3f}")
    print(f"rms error: start {history[0]:.3f}, end {history[-1]:.3f}")


if __name__ == "__main__":
    main()
