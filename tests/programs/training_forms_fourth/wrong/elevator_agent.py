import random
from collections import deque, namedtuple

import torch
from torch import nn
from torch.func import functional_call

random.seed(5)
torch.manual_seed(5)
Ride = namedtuple("Ride", "before lift gain after over")
FLOORS = 6


class Shaft:
    def reset(self):
        self.at, self.call, self.clock = random.randrange(FLOORS), random.randrange(FLOORS), 0
        return self.view()

    def view(self):
        out = torch.zeros(2 * FLOORS)
        out[self.at] = out[FLOORS + self.call] = 1.0
        return out

    def move(self, lift):
        self.at = min(max(self.at + lift - 1, 0), FLOORS - 1)
        self.clock += 1
        served = self.at == self.call
        gain = (1.0 if served else -0.1) + random.gauss(0, 0.5)
        return self.view(), gain, served or self.clock >= 12


class DoubleQ:
    def __init__(self, gamma=0.95):
        self.net = nn.Sequential(nn.Linear(2 * FLOORS, 48), nn.Tanh(), nn.Linear(48, 3))
        self.fast = {k: v for k, v in self.net.named_parameters()}
        self.slow = {k: v.detach().clone() for k, v in self.fast.items()}
        self.opt = torch.optim.Adagrad(self.fast.values(), lr=3e-2)
        self.gamma = gamma

    def values(self, weights, state):
        return functional_call(self.net, weights, (state,))

    @torch.no_grad()
    def goal(self, gain, after, over):
        slow_next = self.values(self.slow, after)
        choice = slow_next.argmax(-1, keepdim=True)
        ahead = torch.take_along_dim(slow_next, choice, -1).squeeze(-1)
        return gain + self.gamma * (1 - over) * ahead

    def learn(self, rides):
        before, after = (torch.stack([getattr(r, f) for r in rides]) for f in ("before", "after"))
        gain, over = (torch.tensor([float(getattr(r, f)) for r in rides]) for f in ("gain", "over"))
        lift = torch.tensor([r.lift for r in rides])
        taken = self.values(self.fast, before)[torch.arange(len(rides)), lift]
        loss = nn.functional.huber_loss(taken, self.goal(gain, after, over))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for k, v in self.slow.items():
                v.lerp_(self.fast[k], 0.05)
        return loss.item(), taken.mean().item()


agent, shaft, memory = DoubleQ(), Shaft(), deque(maxlen=600)
state = shaft.reset()
for tick in range(800):
    with torch.no_grad():
        greedy = int(agent.values(agent.fast, state).argmax())
    lift = random.randrange(3) if random.random() < 0.3 else greedy
    after, gain, over = shaft.move(lift)
    memory.append(Ride(state, lift, gain, after, over))
    state = shaft.reset() if over else after
    if tick > 100:
        loss, level = agent.learn(random.sample(memory, 48))
    if tick % 200 == 199:
        print(f"tick {tick + 1}  loss {loss:.4f}  mean value {level:.4f}")
