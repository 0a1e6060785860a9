"""Online actor-critic with eligibility traces (Sutton and Barto, 2018, section 13.5) in a windy corridor.

No optimizer: every step adds the temporal-difference error times the traces to the weights.
"""
import torch
from torch import nn

torch.manual_seed(17)

CELLS, GAMMA, LAMBDA = 9, 0.95, 0.8
CRITIC_RATE, ACTOR_RATE, EPISODES, LIMIT = 0.05, 0.06, 45, 50
MOVES = (-1, 0, 1)


class Corridor:
    """Start in the middle, reach the right end; the wind blows back now and then."""

    def reset(self):
        self.cell, self.time = CELLS // 2, 0
        return self.observe()

    def observe(self):
        centres = torch.arange(CELLS, dtype=torch.float32)
        return torch.exp(-0.5 * (centres - self.cell).pow(2))

    def step(self, action):
        move = MOVES[action] - int(torch.rand(()) < 0.15)
        self.cell = min(max(self.cell + move, 0), CELLS - 1)
        self.time += 1
        arrived = self.cell == CELLS - 1
        return self.observe(), (1.0 if arrived else -0.02), arrived


def network(outputs):
    net = nn.Sequential(nn.Linear(CELLS, 16), nn.Tanh(), nn.Linear(16, outputs))
    nn.init.zeros_(net[-1].weight)
    nn.init.zeros_(net[-1].bias)
    return net


class Traces:
    """Decaying sums of gradients, one per weight, and the update that uses them."""

    def __init__(self, net, rate):
        self.net, self.rate = net, rate
        self.values = [torch.zeros_like(p) for p in net.parameters()]

    def clear(self):
        for trace in self.values:
            trace.zero_()

    def absorb(self, output, scale=1.0):
        gradients = torch.autograd.grad(output, list(self.net.parameters()))
        for trace, gradient in zip(self.values, gradients):
            trace.mul_(GAMMA * LAMBDA).add_(gradient, alpha=scale)

    def apply(self, error):
        for p, trace in zip(self.net.parameters(), self.values):
            p.data.add_(trace, alpha=self.rate * error)


class Walker:
    def __init__(self):
        self.actor, self.critic = network(len(MOVES)), network(1)
        self.actor_traces = Traces(self.actor, ACTOR_RATE)
        self.critic_traces = Traces(self.critic, CRITIC_RATE)

    def begin(self):
        self.actor_traces.clear()
        self.critic_traces.clear()
        self.discount = 1.0

    def act(self, state):
        log_probs = torch.log_softmax(self.actor(state), dim=0)
        action = int(torch.multinomial(log_probs.detach().exp(), 1))
        return action, log_probs[action]

    def learn(self, state, log_prob, reward, following, arrived):
        value = self.critic(state).squeeze()
        with torch.no_grad():
            ahead = 0.0 if arrived else self.critic(following).item()
        error = reward + GAMMA * ahead - value.item()
        self.critic_traces.absorb(value)
        self.actor_traces.absorb(log_prob, scale=self.discount)
        self.critic_traces.apply(error)
        self.actor_traces.apply(error)
        self.discount *= GAMMA
        return error


def journey(walker, corridor):
    state, total = corridor.reset(), 0.0
    walker.begin()
    while corridor.time < LIMIT:
        action, log_prob = walker.act(state)
        following, reward, arrived = corridor.step(action)
        walker.learn(state, log_prob, reward, following, arrived)
        state, total = following, total + reward
        if arrived:
            break
    return corridor.time, total


walker, corridor = Walker(), Corridor()
lengths = []
for episode in range(1, EPISODES + 1):
    length, total = journey(walker, corridor)
    lengths.append(length)
    if episode % 9 == 0:
        print(f"episode {episode:3d}  mean length of the last nine {sum(lengths[-9:]) / 9:5.1f}  return {total:.3f}")

with torch.no_grad():
    for cell in (1, 4, 7):
        corridor.reset()
        corridor.cell = cell
        features = corridor.observe()
        print(f"cell {cell}  value {walker.critic(features).item():.3f}  "
              f"to the right {walker.actor(features).softmax(dim=0)[2].item():.3f}")
