import torch
from torch import nn


class ThrusterModel(nn.Module):
    def __init__(self, state=4, action=2, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(state + action, width), nn.SiLU(), nn.Linear(width, state))

    def forward(self, state, action):
        return state + self.net(torch.cat([state, action], dim=-1))


class Pilot(nn.Module):
    def __init__(self, state=4, action=2, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(state, width), nn.SiLU(), nn.Linear(width, action))

    def forward(self, state):
        return torch.tanh(self.net(state))


class Dock:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.push = torch.tensor([[0.3, 0.05], [-0.05, 0.25]])

    def sample(self, n):
        state = torch.randn(n, 4, generator=self.g)
        action = torch.rand(n, 2, generator=self.g) * 2 - 1
        return state, action, self.step(state, action)

    def step(self, state, action):
        place, speed = state[:, :2], state[:, 2:]
        speed = 0.95 * speed + action @ self.push
        return torch.cat([place + 0.2 * speed, speed], dim=-1)


class Worker:
    def __init__(self, module, lr):
        self.module = module
        self.opt = torch.optim.Adam(module.parameters(), lr=lr)

    def apply(self, loss):
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        return loss.item()


class Planner:
    def __init__(self, horizon=6):
        self.model, self.pilot = ThrusterModel(), Pilot()
        self.horizon = horizon
        self.model_worker = Worker(self.model, 3e-3)
        self.pilot_worker = Worker(self.pilot, 3e-3)

    def fit_model(self, state, action, nxt):
        return self.model_worker.apply((self.model(state, action) - nxt).pow(2).mean())

    def imagine(self, state):
        cost = 0.0
        for _ in range(self.horizon):
            action = self.pilot(state)
            state = self.model(state, action)
            cost = cost + state.pow(2).sum(-1).mean() + 0.01 * action.pow(2).sum(-1).mean()
        return cost / self.horizon

    def fit_pilot(self, state):
        return self.pilot_worker.apply(self.imagine(state))


def train(planner, dock, rounds=60):
    for k in range(rounds):
        state, action, nxt = dock.sample(64)
        error = planner.fit_model(state, action, nxt)
        cost = planner.fit_pilot(state)
        if k % 15 == 14:
            print(f"{k + 1} model error {error:.4f} imagined cost {cost:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    planner = Planner()
    train(planner, Dock(seed=2))
