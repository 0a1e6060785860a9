"""Catching a falling ball from pixels: discrete actor-critic in which the critics' loss alone shapes the encoder (SAC-AE)."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, SIDE, N_ENVS, STEPS, BATCH, GAMMA, TAU, ALPHA = 9, 8, 16, 500, 128, 0.9, 0.05, 0.02
torch.manual_seed(SEED)


class Catch:
    def __init__(self, n):
        self.n, self.paddle = n, torch.randint(SIDE, (n,))
        self.col, self.row = torch.randint(SIDE, (n,)), torch.randint(SIDE - 1, (n,))

    def image(self):
        img = torch.zeros(self.n, 1, SIDE, SIDE)
        img[torch.arange(self.n), 0, self.row, self.col] = 1.0
        img[torch.arange(self.n), 0, SIDE - 1, self.paddle] = 1.0
        return img

    def step(self, a):
        """Returns the last image of the step, reward, end flags and the image to go on with."""
        self.paddle = (self.paddle + a - 1).clamp(0, SIDE - 1)
        self.row = self.row + 1
        done = self.row == SIDE - 1
        reward = torch.where(done, (self.paddle == self.col).float(), 0.0)
        image = self.image()
        self.row = torch.where(done, 0, self.row)
        self.col = torch.where(done, torch.randint(SIDE, (self.n,)), self.col)
        return image, reward, done.float(), self.image()


class Encoder(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.out = nn.Sequential(nn.Linear(8 * SIDE * SIDE, dim), nn.LayerNorm(dim), nn.Tanh())

    def forward(self, img):
        return self.out(self.conv(img))


class Critics(nn.Module):
    """Two Q functions on top of one encoder."""

    def __init__(self, encoder, dim=48):
        super().__init__()
        self.encoder = encoder
        self.q1, self.q2 = (nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 3)) for _ in range(2))

    def forward(self, img):
        z = self.encoder(img)
        return self.q1(z), self.q2(z)


encoder = Encoder()
critics = Critics(encoder)
critics_target = copy.deepcopy(critics).requires_grad_(False)
head = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 3))
critic_opt = torch.optim.Adam(critics.parameters(), lr=1e-3)
actor_opt = torch.optim.Adam(head.parameters(), lr=1e-3)


def policy(img):
    return F.log_softmax(head(encoder(img).detach()), -1)


env, memory, caught = Catch(N_ENVS), [], []
img = env.image()
for step in range(STEPS):
    with torch.no_grad():
        action = torch.distributions.Categorical(logits=policy(img)).sample()
    last, reward, done, following = env.step(action)
    memory.append((img, action, reward, last, done))
    img = following
    caught.append((reward.sum().item(), done.sum().item()))

    picks = torch.randint(len(memory), (BATCH // N_ENVS,))
    o, a, r, n, d = (torch.cat(x) for x in zip(*(memory[i] for i in picks)))
    with torch.no_grad():
        logp = policy(n)
        soft_v = (logp.exp() * (torch.min(*critics_target(n)) - ALPHA * logp)).sum(-1)
        y = r + GAMMA * (1 - d) * soft_v
    critic_loss = sum(F.mse_loss(q.gather(1, a[:, None]).squeeze(1), y) for q in critics(o))
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    if step % 2 == 0:
        logp = policy(o)
        with torch.no_grad():
            q = torch.min(*critics(o))
        actor_loss = (logp.exp() * (ALPHA * logp - q)).sum(-1).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
    with torch.no_grad():
        for t, s in zip(critics_target.parameters(), critics.parameters()):
            t.lerp_(s, TAU)
    if step % 100 == 99:
        hits, ends = (sum(x) for x in zip(*caught[-100:]))
        print(f"step {step + 1}  critic loss {critic_loss.item():.4f}  caught {hits / ends:.3f}")
