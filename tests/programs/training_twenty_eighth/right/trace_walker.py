"""Actor-critic with eligibility traces, step by step, in a grid with a pit; after Sutton and Barto, chapter 13."""
import torch
import torch.nn as nn


class Grid:
    """Square cells. Start on the left, goal in the middle of the right side, a pit in a corner ends the episode badly."""

    moves = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def __init__(self, size=5):
        self.size = size
        self.goal, self.pit = (size // 2, size - 1), (0, size - 1)

    def reset(self):
        self.cell = (int(torch.randint(self.size, ())), 0)
        return self.features()

    def features(self):
        row, column = self.cell
        out = torch.zeros(2 * self.size + 2)
        out[row] = 1.0
        out[self.size + column] = 1.0
        out[-2] = (row - self.size / 2) / self.size
        out[-1] = (column - self.size / 2) / self.size
        return out

    def step(self, action):
        dr, dc = self.moves[action]
        row, column = self.cell
        self.cell = (min(max(row + dr, 0), self.size - 1), min(max(column + dc, 0), self.size - 1))
        if self.cell == self.goal:
            return self.features(), 1.0, True
        if self.cell == self.pit:
            return self.features(), -1.0, True
        return self.features(), -0.02, False


class Traces:
    """One decaying sum of gradients for each parameter."""

    def __init__(self, module, decay):
        self.params = list(module.parameters())
        self.decay = decay
        self.values = [torch.zeros_like(p) for p in self.params]

    def reset(self):
        for e in self.values:
            e.zero_()

    def add(self, scalar):
        for e, g in zip(self.values, torch.autograd.grad(scalar, self.params)):
            e.mul_(self.decay).add_(g)

    def apply(self, amount):
        for p, e in zip(self.params, self.values):
            p.data.add_(e, alpha=amount)


def make_net(inputs, outputs, hidden=24):
    net = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))
    nn.init.zeros_(net[-1].weight)
    nn.init.zeros_(net[-1].bias)
    return net


def run_episode(env, actor, critic, traces, gamma=0.95, lr=(0.1, 0.05), limit=30):
    actor_trace, critic_trace = traces
    actor_trace.reset()
    critic_trace.reset()
    obs, total = env.reset(), 0.0
    for _ in range(limit):
        dist = torch.distributions.Categorical(logits=actor(obs))
        action = dist.sample()
        value = critic(obs).squeeze()
        next_obs, reward, done = env.step(action.item())
        with torch.no_grad():
            next_value = 0.0 if done else critic(next_obs).item()
        delta = reward + gamma * next_value - value.item()

        critic_trace.add(value)
        actor_trace.add(dist.log_prob(action))
        critic_trace.apply(lr[1] * delta)
        actor_trace.apply(lr[0] * delta)
        obs = next_obs
        total += reward
        if done:
            break
    return total


def main(episodes=100):
    torch.manual_seed(5)
    env = Grid()
    actor, critic = make_net(12, 4), make_net(12, 1)
    traces = Traces(actor, 0.95 * 0.8), Traces(critic, 0.95 * 0.8)
    returns = []
    for episode in range(episodes):
        returns.append(run_episode(env, actor, critic, traces))
        if episode % 20 == 19:
            print(f"episode {episode + 1:4d}  return {sum(returns[-20:]) / 20:.3f}")
    return actor, critic, returns


if __name__ == "__main__":
    actor, critic, returns = main()
    with torch.no_grad():
        print("value of the start row", round(critic(Grid().reset()).item(), 3))
