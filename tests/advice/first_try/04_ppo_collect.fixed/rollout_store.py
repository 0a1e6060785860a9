import torch


class DriftEnv:
    def __init__(self, num):
        self.num = num
        self.state = torch.randn(num, 4)
        self.push = torch.tensor([-0.2, 0.0, 0.2])

    def observe(self):
        return self.state.clone()

    def step(self, action):
        force = self.push[action].unsqueeze(1)
        drift = 0.05 * torch.randn(self.num, 4)
        self.state = 0.95 * self.state + force + drift
        return -self.state.abs().mean(dim=1)


class Collector:
    def __init__(self, env, gamma, lam):
        self.env, self.gamma, self.lam = env, gamma, lam

    def advantages(self, rew, val, last):
        adv = torch.zeros_like(rew)
        running = torch.zeros_like(last)
        for t in range(rew.shape[0] - 1, -1, -1):
            nxt = val[t + 1] if t + 1 < rew.shape[0] else last
            delta = rew[t] + self.gamma * nxt - val[t]
            running = delta + self.gamma * self.lam * running
            adv[t] = running
        return adv

    @torch.no_grad()
    def collect(self, model, steps):
        rows = {"obs": [], "act": [], "logp": [], "rew": [], "val": []}
        for _ in range(steps):
            obs = self.env.observe()
            dist, value = model(obs)
            act = dist.sample()
            rew = self.env.step(act)
            for key, item in zip(rows, (obs, act, dist.log_prob(act), rew, value)):
                rows[key].append(item)
        data = {k: torch.stack(v) for k, v in rows.items()}
        last = model(self.env.observe())[1]
        data["adv"] = self.advantages(data.pop("rew"), data["val"], last)
        data["ret"] = data["adv"] + data.pop("val")
        return {k: v.flatten(0, 1) for k, v in data.items()}
