import copy
import torch
from torch import nn

torch.manual_seed(8)


def soft_update(target, source, tau):
    src = source.state_dict()
    with torch.no_grad():
        for key, value in target.state_dict().items():
            value.copy_(torch.lerp(value, src[key], tau))


class Memory:
    def __init__(self, size, obs, actions):
        self.obs = torch.randn(size, obs)
        self.act = torch.randint(actions, (size, 1))
        drift = torch.randn(obs, actions) * 0.3
        self.nxt = 0.8 * self.obs + drift[:, self.act.squeeze(1)].T
        self.rew = -self.nxt.pow(2).mean(1, keepdim=True)
        self.end = (torch.rand(size, 1) < 0.1).float()

    def draw(self, count):
        i = torch.randint(len(self.obs), (count,))
        return self.obs[i], self.act[i], self.rew[i], self.nxt[i], self.end[i]


class Agent:
    def __init__(self, obs=6, actions=4, gamma=0.95, tau=0.02):
        self.online = nn.Sequential(nn.Linear(obs, 48), nn.Tanh(), nn.Linear(48, actions))
        self.frozen = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.RMSprop(self.online.parameters(), lr=1e-3)
        self.gamma, self.tau = gamma, tau

    def learn(self, batch):
        obs, act, rew, nxt, end = batch
        with torch.no_grad():
            best = self.frozen(nxt).amax(1, keepdim=True)
            goal = rew + self.gamma * (1 - end) * best
        value = self.online(obs).gather(1, act)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        soft_update(self.frozen, self.online, self.tau)
        return loss.item()


memory = Memory(1000, 6, 4)
agent = Agent()
for it in range(300):
    loss = agent.learn(memory.draw(64))
    if it % 60 == 59:
        print(f"{it + 1:4d} td {loss:.4f} mean value {agent.online(memory.obs).mean().item():.4f}")
