import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim + act_dim, 48)
        self.fc2 = nn.Linear(48, 48)
        self.out = nn.Linear(48, 1)

    def forward(self, obs, act):
        h = F.relu(self.fc1(torch.cat([obs, act], dim=1)))
        return self.out(F.relu(self.fc2(h)))


class Policy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.fc = nn.Linear(obs_dim, 48)
        self.mu = nn.Linear(48, act_dim)
        self.log_sigma = nn.Linear(48, act_dim)

    def forward(self, obs):
        h = F.relu(self.fc(obs))
        sigma = self.log_sigma(h).clamp(-4, 1).exp()
        d = torch.distributions.Normal(self.mu(h), sigma)
        u = d.rsample()
        a = torch.tanh(u)
        logp = (d.log_prob(u) - torch.log(1.0 - a * a + 1e-6)).sum(1, keepdim=True)
        return a, logp


class Learner:
    def __init__(self, obs_dim=5, act_dim=2):
        self.pi = Policy(obs_dim, act_dim)
        self.q1, self.q2 = QNet(obs_dim, act_dim), QNet(obs_dim, act_dim)
        self.t1, self.t2 = QNet(obs_dim, act_dim), QNet(obs_dim, act_dim)
        self.t1.load_state_dict(self.q1.state_dict())
        self.t2.load_state_dict(self.q2.state_dict())
        self.optim = {
            name: torch.optim.Adam(getattr(self, name).parameters(), lr=2e-3)
            for name in ("q1", "q2", "pi")
        }
        self.alpha, self.gamma = 0.1, 0.95

    def q_losses(self, obs, act, rew, nxt):
        with torch.no_grad():
            a2, lp2 = self.pi(nxt)
            v = torch.min(self.t1(nxt, a2), self.t2(nxt, a2)) - self.alpha * lp2
            y = rew + self.gamma * v
        return F.mse_loss(self.q1(obs, act), y), F.mse_loss(self.q2(obs, act), y)

    def pi_loss(self, obs):
        a, lp = self.pi(obs)
        return (self.alpha * lp - torch.min(self.q1(obs, a), self.q2(obs, a))).mean()

    def apply(self, name, loss):
        self.optim[name].zero_grad()
        loss.backward()
        self.optim[name].step()
        return loss.item()

    def learn(self, obs, act, rew, nxt):
        losses = dict(zip(("q1", "q2"), self.q_losses(obs, act, rew, nxt)))
        logs = {name: self.apply(name, loss) for name, loss in losses.items()}
        logs["pi"] = self.apply("pi", self.pi_loss(obs))
        with torch.no_grad():
            for net, tgt in ((self.q1, self.t1), (self.q2, self.t2)):
                for p, q in zip(net.parameters(), tgt.parameters()):
                    q.mul_(0.98).add_(p, alpha=0.02)
        return logs


def main():
    torch.manual_seed(1)
    learner = Learner()
    for step in range(10):
        obs = torch.randn(64, 5)
        act = torch.rand(64, 2) * 2 - 1
        rew = 1 - (act - 0.5 * obs[:, :2]).abs().sum(1, keepdim=True)
        logs = learner.learn(obs, act, rew, obs + 0.05 * torch.randn(64, 5))
        print(step, {k: round(v, 4) for k, v in logs.items()})


if __name__ == "__main__":
    main()
