"""A latent world model of a gantry crane; the controller is trained by back-propagation through imagined rollouts."""
import torch
from torch import nn


class Crane:
    """Cart with a swinging load. Observation: 12 noisy rangefinders."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen
        self.mix = torch.randn(4, 12, generator=torch.Generator().manual_seed(99)) * 0.5

    def reset(self):
        self.s = torch.randn(self.n, 4, generator=self.gen) * torch.tensor([1.0, 0.2, 0.3, 0.2])
        return self.observe()

    def observe(self):
        clean = torch.tanh(self.s @ self.mix)
        return clean + 0.02 * torch.randn(clean.shape, generator=self.gen)

    def step(self, a):
        x, v, th, w = self.s.unbind(1)
        f = a[:, 0].clamp(-1, 1)
        v = 0.95 * v + 0.3 * f
        w = 0.97 * w - 0.3 * torch.sin(th) - 0.15 * f
        self.s = torch.stack([(x + 0.2 * v).clamp(-3, 3), v, th + 0.2 * w, w], dim=1)
        return self.observe(), -0.3 * (self.s[:, 0] ** 2 + self.s[:, 2] ** 2) - 0.02 * f ** 2


def mlp(i, o, h=48):
    return nn.Sequential(nn.Linear(i, h), nn.ELU(), nn.Linear(h, o))


class WorldModel(nn.Module):
    def __init__(self, obs=12, act=1, latent=8):
        super().__init__()
        self.encoder = mlp(obs, latent)
        self.decoder = mlp(latent, obs)
        self.dynamics = mlp(latent + act, latent)
        self.reward = mlp(latent + act, 1)

    def forward(self, z, a):
        za = torch.cat([z, a], dim=-1)
        return z + self.dynamics(za), -nn.functional.softplus(self.reward(za).squeeze(-1))

    def loss(self, obs, act, rew):
        z = self.encoder(obs[:, 0])
        terms = {"recon": (self.decoder(z) - obs[:, 0]).pow(2).mean(), "reward": 0.0, "predict": 0.0}
        for t in range(act.shape[1]):
            z, r = self(z, act[:, t])
            terms["predict"] = terms["predict"] + (self.decoder(z) - obs[:, t + 1]).pow(2).mean()
            terms["reward"] = terms["reward"] + (r - rew[:, t]).pow(2).mean()
        return terms


class Controller(nn.Module):
    def __init__(self, latent=8, act=1):
        super().__init__()
        self.net = mlp(latent, act)

    def forward(self, z):
        return torch.tanh(self.net(z))


@torch.no_grad()
def collect(env, model, actor, length, noise, gen):
    o = env.reset()
    obs, act, rew = [o], [], []
    for _ in range(length):
        a = actor(model.encoder(o))
        a = (a + noise * torch.randn(a.shape, generator=gen)).clamp(-1, 1)
        o, r = env.step(a)
        obs.append(o), act.append(a), rew.append(r)
    return torch.stack(obs, 1), torch.stack(act, 1), torch.stack(rew, 1)


def imagine(model, actor, obs, horizon):
    z = model.encoder(obs).detach()
    total = 0.0
    for k in range(horizon):
        z, r = model(z, actor(z))
        total = total + 0.98 ** k * r
    return total.mean() / horizon


def main(updates=400):
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    env, model, actor = Crane(32, gen), WorldModel(), Controller()
    model_opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=2e-3)
    log = []
    for it in range(updates):
        if it % 5 == 0:
            data = collect(env, model, actor, 12, 0.5, gen)
        start = torch.randint(0, 8, (1,), generator=gen).item()
        obs, act, rew = data[0][:, start:start + 5], data[1][:, start:start + 4], data[2][:, start:start + 4]

        terms = model.loss(obs, act, rew)
        sum(terms.values()).backward()
        model_opt.step()
        model_opt.zero_grad()

        dreamed = imagine(model, actor, obs.flatten(0, 1), 10)
        (-dreamed).backward()
        actor_opt.step()
        actor_opt.zero_grad()

        log.append((terms["predict"].item(), terms["reward"].item(), dreamed.item(), rew.mean().item()))
        if it % 80 == 0:
            print("%4d  predict %.3f  reward %.3f  dreamed %.2f  real %.2f" % (it, *log[-1]))
    return model, actor, log


if __name__ == "__main__":
    model, actor, log = main()
    tail = torch.tensor(log[-40:]).mean(0)
    print("predict %.3f  reward error %.3f  dreamed return %.2f  real reward %.2f" % tuple(tail.tolist()))
