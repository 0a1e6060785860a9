import torch
from torch import nn


def mlp(*sizes):
    parts = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        parts += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*parts[:-1])


class Replay:
    def __init__(self, n):
        self.state = torch.rand(n, 3) * 2 - 1
        self.action = torch.rand(n, 1) * 2 - 1
        wanted = 0.6 * self.state[:, :1] - 0.4 * self.state[:, 1:2] * self.state[:, 2:]
        self.reward = 1 - (self.action - wanted).square() * 2
        drift = 0.1 * self.action + 0.02 * torch.randn(n, 3)
        self.after = (self.state + drift).clamp(-1, 1)

    def draw(self, k):
        at = torch.randint(len(self.state), (k,))
        return self.state[at], self.action[at], self.reward[at], self.after[at]


class Agent:
    gamma = 0.8

    def __init__(self):
        self.policy = mlp(3, 24, 1)
        self.value = mlp(4, 32, 1)
        self.frozen = mlp(4, 32, 1)
        self.frozen.load_state_dict(self.value.state_dict())
        self.policy_opt = torch.optim.SGD(self.policy.parameters(), lr=0.02)
        self.value_opt = torch.optim.SGD(self.value.parameters(), lr=0.05)

    def q(self, net, s, a):
        return net(torch.cat((s, a), 1))

    def improve_value(self, s, a, r, s2):
        with torch.no_grad():
            goal = r + self.gamma * self.q(self.frozen, s2, torch.tanh(self.policy(s2)))
        error = (self.q(self.value, s, a) - goal).square().mean()
        error.backward()
        self.value_opt.step()
        self.value_opt.zero_grad()
        return error.item()

    def improve_policy(self, s):
        gain = self.q(self.value, s, torch.tanh(self.policy(s))).mean()
        (-gain).backward()
        self.policy_opt.step()
        self.policy_opt.zero_grad()
        return gain.item()

    def follow(self, tau=0.05):
        with torch.no_grad():
            for t, v in zip(self.frozen.parameters(), self.value.parameters()):
                t.lerp_(v, tau)


def main():
    torch.manual_seed(5)
    replay, agent = Replay(1500), Agent()
    for it in range(400):
        s, a, r, s2 = replay.draw(64)
        td = agent.improve_value(s, a, r, s2)
        gain = agent.improve_policy(s)
        agent.follow()
        if it % 80 == 79:
            print(f"iteration {it + 1}: td error {td:.4f}, mean value {gain:.3f}")


if __name__ == "__main__":
    main()
