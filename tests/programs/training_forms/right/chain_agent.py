import copy
import random
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(1)
random.seed(1)
STATES = 8


def walk(state, action):
    nxt = min(state + 1, STATES - 1) if action else max(state - 1, 0)
    return nxt, float(nxt == STATES - 1)


def blend(a, b, share):
    return {k: (1 - share) * v + share * b[k] for k, v in a.items()}


class Agent:
    def __init__(self, share=0.05):
        self.fast = nn.Sequential(nn.Linear(STATES, 32), nn.Tanh(), nn.Linear(32, 2))
        self.slow = copy.deepcopy(self.fast).requires_grad_(False)
        self.opt = torch.optim.Adam(self.fast.parameters(), lr=5e-3)
        self.memory, self.share = [], share

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return self.fast(torch.eye(STATES)[state]).argmax().item()

    def learn(self, size=32):
        s, a, r, n = map(torch.tensor, zip(*random.sample(self.memory, size)))
        eye = torch.eye(STATES)
        goal = r + 0.9 * self.slow(eye[n]).amax(1)
        guess = self.fast(eye[s]).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(guess, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.follow()
        return loss.item()

    def follow(self):
        fast, slow = self.fast.state_dict(), self.slow.state_dict()
        self.slow.load_state_dict(blend(slow, fast, self.share))


agent = Agent()
for episode in range(30):
    state, gained, loss = 0, 0.0, 0.0
    for _ in range(20):
        action = agent.act(state, max(0.2, 1 - episode / 20))
        nxt, reward = walk(state, action)
        agent.memory.append((state, action, reward, nxt))
        state, gained = nxt, gained + reward
        if len(agent.memory) >= 64:
            loss = agent.learn()
    if episode % 6 == 5:
        top = agent.fast(torch.eye(STATES)).amax().item()
        print(f"episode {episode} return {gained:.0f} loss {loss:.4f} best value {top:.3f}")
