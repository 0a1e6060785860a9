"""Contrastive pretraining of sensor windows with a large batch that is encoded in small chunks.

The embeddings of the whole batch are computed first, the loss is differentiated with respect to them, and the chunks are
then encoded again to carry those gradients into the encoder.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
CLASSES, CHANNELS, LENGTH = 8, 3, 64
BATCH, CHUNK, STEPS = 256, 64, 60


def make_windows(n, gen):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    t = torch.arange(LENGTH) / LENGTH
    freq = 2 + y.float().view(-1, 1, 1) * 1.3
    chan = torch.arange(CHANNELS).view(1, -1, 1) * 0.7
    phase = torch.rand(n, 1, 1, generator=gen) * 6.28
    x = torch.sin(6.28 * freq * t.view(1, 1, -1) + phase + chan)
    return x + 0.5 * torch.randn(x.shape, generator=gen), y


def augment(x, gen):
    shift = int(torch.randint(0, LENGTH, (1,), generator=gen))
    scale = 0.7 + 0.6 * torch.rand(len(x), CHANNELS, 1, generator=gen)
    return torch.roll(x, shift, dims=-1) * scale + 0.3 * torch.randn(x.shape, generator=gen)


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(CHANNELS, 24, 7, stride=2), nn.GroupNorm(4, 24), nn.ReLU(),
            nn.Conv1d(24, 48, 5, stride=2), nn.GroupNorm(4, 48), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.1)
        self.proj = nn.Linear(48, dim)

    def features(self, x):
        return self.conv(x)

    def forward(self, x):
        return F.normalize(self.proj(self.drop(self.features(x))), dim=-1)


def nt_xent(za, zb, temp=0.2):
    logits = za @ zb.T / temp
    target = torch.arange(len(za))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


def cached_backward(encoder, views):
    """Fill the encoder's .grad as if all views had been encoded in one piece."""
    chunks = [c for v in views for c in v.split(CHUNK)]
    states, embeddings = [], []
    with torch.no_grad():
        for c in chunks:
            states.append(torch.get_rng_state())
            embeddings.append(encoder(c))
    z = torch.cat(embeddings).requires_grad_()
    loss = nt_xent(*z.chunk(2))
    (grad_z,) = torch.autograd.grad(loss, z)

    after = torch.get_rng_state()
    for c, state, g in zip(chunks, states, grad_z.split(CHUNK)):
        torch.set_rng_state(state)  # the same dropout mask as in the first pass
        encoder(c).backward(gradient=g)
    torch.set_rng_state(after)
    return loss.detach()


def probe(encoder, x, y, x_val, y_val):
    encoder.eval()
    with torch.no_grad():
        f, f_val = encoder.features(x), encoder.features(x_val)
    mean, std = f.mean(0), f.std(0) + 1e-6
    f, f_val = (f - mean) / std, (f_val - mean) / std
    head = nn.Linear(f.shape[1], CLASSES)
    opt = torch.optim.LBFGS(head.parameters(), max_iter=40)

    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(head(f), y) + 1e-3 * head.weight.square().sum()
        loss.backward()
        return loss

    opt.step(closure)
    encoder.train()
    with torch.no_grad():
        return (head(f_val).argmax(1) == y_val).float().mean().item()


torch.manual_seed(SEED)
gen = torch.Generator().manual_seed(SEED)
x, y = make_windows(2048, gen)
x_val, y_val = make_windows(512, gen)
encoder = Encoder()
print(f"probe before pretraining: {probe(encoder, x[:200], y[:200], x_val, y_val):.3f}")
opt = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for step in range(STEPS):
    batch = x[torch.randint(0, len(x), (BATCH,), generator=gen)]
    opt.zero_grad()
    loss = cached_backward(encoder, (augment(batch, gen), augment(batch, gen)))
    opt.step()
    if step % 15 == 0:
        print(f"step {step:3d}  loss {loss.item():.4f}")
print(f"probe after pretraining: {probe(encoder, x[:200], y[:200], x_val, y_val):.3f}")
