import torch
from torch import nn


def mlp(inputs, outputs, width=32):
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, outputs))


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, state, action):
        return state + self.net(torch.cat([state, action], -1))


class Pendulum:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def states(self, n):
        return torch.randn(n, 2, generator=self.g) * torch.tensor([0.8, 0.5])

    def step(self, state, action):
        angle, speed = state.unbind(-1)
        speed = speed + 0.2 * (torch.sin(angle) + action[:, 0])
        return torch.stack([angle + 0.2 * speed, speed], -1)


class Agent:
    def __init__(self, horizon=5):
        self.dynamics, self.policy, self.horizon = Dynamics(), mlp(2, 1), horizon
        self.opt_dynamics = torch.optim.Adam(self.dynamics.parameters(), lr=5e-3)
        self.opt_policy = torch.optim.Adam(self.policy.parameters(), lr=5e-3)

    def act(self, state):
        return 2 * torch.tanh(self.policy(state))

    def learn_dynamics(self, state, action, nxt):
        self.opt_dynamics.zero_grad()
        loss = (self.dynamics(state, action) - nxt).pow(2).sum(-1).mean()
        loss.backward()
        self.opt_dynamics.step()
        return loss.item()

    def learn_policy(self, state):
        cost = 0.0
        for _ in range(self.horizon):
            action = self.act(state)
            state = self.dynamics(state, action)
            cost = cost + (state.pow(2).sum(-1) + 0.05 * action.pow(2).sum(-1)).mean()
        self.opt_policy.zero_grad()
        cost.backward()
        self.opt_policy.step()
        return cost.item() / self.horizon


def train(agent, env, rounds=80):
    for k in range(rounds):
        state = env.states(64)
        with torch.no_grad():
            action = agent.act(state) + 0.5 * torch.randn(64, 1, generator=env.g)
        model_loss = agent.learn_dynamics(state, action, env.step(state, action))
        cost = agent.learn_policy(state)
        if k % 20 == 19:
            print(f"{k + 1} model {model_loss:.4f} imagined cost {cost:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    agent = Agent()
    train(agent, Pendulum(4))
