import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(n_in, n_out, hidden=32):
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = mlp(obs_dim, 2 * act_dim)

    def sample(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        action = torch.tanh(raw)
        logp = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, logp.sum(-1, keepdim=True)


class SAC:
    def __init__(self, obs_dim=6, act_dim=2, gamma=0.98, alpha_period=3):
        self.policy = GaussianPolicy(obs_dim, act_dim)
        self.q = mlp(obs_dim + act_dim, 1)
        self.q_target = mlp(obs_dim + act_dim, 1)
        self.q_target.load_state_dict(self.q.state_dict())
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.policy_opt = torch.optim.Adam(self.policy.parameters(), lr=3e-3)
        self.q_opt = torch.optim.Adam(self.q.parameters(), lr=3e-3)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=1e-2)
        self.gamma, self.alpha_period = gamma, alpha_period
        self.target_entropy = -float(act_dim)
        self.updates = 0
        self.refresh_temperature()

    def refresh_temperature(self):
        self.alpha = self.log_alpha.exp()

    def critic_loss(self, batch):
        with torch.no_grad():
            a2, logp2 = self.policy.sample(batch["next_obs"])
            q2 = self.q_target(torch.cat([batch["next_obs"], a2], -1))
            y = batch["rew"] + self.gamma * (q2 - self.alpha * logp2)
        q = self.q(torch.cat([batch["obs"], batch["act"]], -1))
        return F.mse_loss(q, y)

    def update(self, batch):
        q_loss = self.critic_loss(batch)
        self.q_opt.zero_grad()
        q_loss.backward()
        self.q_opt.step()

        act, logp = self.policy.sample(batch["obs"])
        q_pi = self.q(torch.cat([batch["obs"], act], -1))
        pi_loss = (self.alpha * logp - q_pi).mean()
        self.policy_opt.zero_grad()
        pi_loss.backward()
        self.policy_opt.step()

        self.updates += 1
        if self.updates % self.alpha_period == 0:
            gap = (logp + self.target_entropy).detach()
            alpha_loss = -(self.log_alpha * gap).mean()
            self.alpha_opt.zero_grad()
            alpha_loss.backward()
            self.alpha_opt.step()
            self.refresh_temperature()
        with torch.no_grad():
            for p, pt in zip(self.q.parameters(), self.q_target.parameters()):
                pt.lerp_(p, 0.05)
        return q_loss.item(), pi_loss.item()


def fake_batch(n=64):
    obs = torch.randn(n, 6)
    act = torch.rand(n, 2) * 2 - 1
    rew = -(act - obs[:, :2]).pow(2).sum(1, keepdim=True)
    return {"obs": obs, "act": act, "rew": rew, "next_obs": obs + 0.1 * torch.randn(n, 6)}


if __name__ == "__main__":
    torch.manual_seed(0)
    agent = SAC()
    for it in range(12):
        q_loss, pi_loss = agent.update(fake_batch())
        print(f"{it:2d} q {q_loss:.4f} pi {pi_loss:.4f} alpha {float(agent.alpha):.4f}")
