"""Imitation with action tokens: a quantised action autoencoder, then a policy over its codes with a small offset."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def demonstrations(n, chunk=6):
    """Two ways around an obstacle: chunks of planar moves, given the start and the target."""
    obs = torch.randn(n, 4)
    aim = (obs[:, 2:] - obs[:, :2]) / chunk
    side = torch.where(obs[:, 0] + 0.3 * torch.randn(n) > 0, 1.0, -1.0)
    phase = torch.linspace(0, torch.pi, chunk)
    normal = torch.stack([-aim[:, 1], aim[:, 0]], 1)
    bend = side.view(-1, 1, 1) * torch.cos(phase).view(1, -1, 1) * normal.unsqueeze(1)
    return obs, (aim.unsqueeze(1) + 1.5 * bend + 0.01 * torch.randn(n, chunk, 2)).flatten(1)


class Codebook(nn.Module):
    """Codes that follow a moving average of the vectors assigned to them."""

    def __init__(self, size, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        codes = torch.randn(size, dim) * 0.3
        self.register_buffer("codes", codes)
        self.register_buffer("mass", torch.ones(size))
        self.register_buffer("total", codes.clone())

    @torch.no_grad()
    def follow(self, z, index):
        hot = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.mass.lerp_(hot.sum(0), 1 - self.decay)
        self.total.lerp_(hot.T @ z, 1 - self.decay)
        self.codes.copy_(self.total / self.mass.clamp(min=1e-3).unsqueeze(1))
        idle = self.mass < 0.05
        if idle.any():
            fresh = z[torch.randint(len(z), (int(idle.sum()),))]
            self.codes[idle], self.total[idle], self.mass[idle] = fresh, fresh, 1.0

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(1)
        q = self.codes[index]
        commitment = F.mse_loss(z, q)
        if self.training:
            self.follow(z.detach(), index)
        return z + (q - z).detach(), index, commitment


class ActionAutoencoder(nn.Module):
    def __init__(self, act_dim, code_dim=6, codes=24, hidden=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(act_dim, hidden), nn.GELU(), nn.Linear(hidden, code_dim))
        self.decoder = nn.Sequential(nn.Linear(code_dim, hidden), nn.GELU(), nn.Linear(hidden, act_dim))
        self.book = Codebook(codes, code_dim)

    def forward(self, actions):
        q, index, commitment = self.book(self.encoder(actions))
        return self.decoder(q), index, commitment


class TokenPolicy(nn.Module):
    def __init__(self, tokens, obs_dim, act_dim, hidden=64):
        super().__init__()
        self.tokens = tokens.eval().requires_grad_(False)
        self.trunk = nn.Sequential(nn.Linear(obs_dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.choice = nn.Linear(hidden, len(tokens.book.codes))
        self.offset = nn.Linear(hidden, act_dim)
        nn.init.zeros_(self.offset.weight)
        nn.init.zeros_(self.offset.bias)

    def train(self, mode=True):
        super().train(mode)
        self.tokens.eval()
        return self

    def loss(self, obs, actions):
        with torch.no_grad():
            coarse, index, _ = self.tokens(actions)
        h = self.trunk(obs)
        return F.cross_entropy(self.choice(h), index), F.mse_loss(coarse + self.offset(h), actions)

    @torch.no_grad()
    def act(self, obs):
        h = self.trunk(obs)
        code = self.tokens.book.codes[self.choice(h).argmax(1)]
        return self.tokens.decoder(code) + self.offset(h)


def main(token_steps=250, policy_steps=250):
    torch.manual_seed(17)
    obs, actions = demonstrations(2000)
    tokens = ActionAutoencoder(actions.shape[1])
    optimizer = torch.optim.Adam(tokens.parameters(), lr=3e-3)
    for step in range(token_steps):
        batch = actions[torch.randint(len(actions), (128,))]
        rebuilt, index, commitment = tokens(batch)
        loss = F.mse_loss(rebuilt, batch) + 0.1 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"tokens {step + 1:4d}  loss {loss.item():.4f}  codes in use {len(index.unique())}")

    policy = TokenPolicy(tokens, obs.shape[1], actions.shape[1])
    optimizer = torch.optim.AdamW((p for p in policy.parameters() if p.requires_grad), lr=3e-3)
    policy.train()
    for step in range(policy_steps):
        idx = torch.randint(len(obs), (128,))
        choice_loss, offset_loss = policy.loss(obs[idx], actions[idx])
        optimizer.zero_grad()
        (choice_loss + 10 * offset_loss).backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"policy {step + 1:4d}  choice {choice_loss.item():.3f}  offset {offset_loss.item():.4f}")
    policy.eval()
    test_obs, test_actions = demonstrations(500)
    print("test error", round(F.mse_loss(policy.act(test_obs), test_actions).item(), 4), "of", round(test_actions.var().item(), 4))
    return tokens, policy


if __name__ == "__main__":
    tokens, policy = main()
