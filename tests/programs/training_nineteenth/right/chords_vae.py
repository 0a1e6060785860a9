"""Lagging inference networks (He et al., 2019): a VAE of chord sequences whose encoder gets extra updates early on."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)

CHORDS, LENGTH, EMB, HIDDEN, LATENT, BATCH = 12, 10, 16, 32, 4, 50
START, EPOCHS, MAX_INNER, WARMUP, CHECK = CHORDS, 5, 9, 3, 3


def songs(n):
    """A song keeps to one of six progressions, from a random place in it, with a few wrong chords."""
    generator = torch.Generator().manual_seed(0)
    loops = torch.stack([torch.randperm(CHORDS, generator=generator)[:4] for _ in range(6)])
    style, shift = torch.randint(6, (n, 1)), torch.randint(4, (n, 1))
    song = loops[style, (shift + torch.arange(LENGTH)) % 4]
    return torch.where(torch.rand(n, LENGTH) < 0.05, torch.randint(CHORDS, (n, LENGTH)), song)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CHORDS, EMB)
        self.rnn = nn.GRU(EMB, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 2 * LATENT)

    def forward(self, x):
        _, h = self.rnn(self.embed(x))
        return self.head(h[-1]).chunk(2, dim=1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CHORDS + 1, EMB)
        self.rnn = nn.GRU(EMB + LATENT, HIDDEN, batch_first=True)
        self.start = nn.Linear(LATENT, HIDDEN)
        self.word_drop = nn.Dropout1d(0.3)
        self.out = nn.Linear(HIDDEN, CHORDS)

    def forward(self, z, x):
        before = torch.cat([torch.full_like(x[:, :1], START), x[:, :-1]], dim=1)
        steps = self.word_drop(self.embed(before))
        steps = torch.cat([steps, z.unsqueeze(1).expand(-1, LENGTH, -1)], dim=2)
        h, _ = self.rnn(steps, torch.tanh(self.start(z))[None])
        return self.out(h)


def elbo_terms(x):
    mean, logvar = encoder(x)
    z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
    nll = F.cross_entropy(decoder(z, x).transpose(1, 2), x, reduction="none").sum(dim=1)
    kl = 0.5 * (mean ** 2 + logvar.exp() - 1 - logvar).sum(dim=1)
    return nll.mean(), kl.mean()


def mutual_information(x):
    """Estimate of I(x, z) under the encoder."""
    with torch.no_grad():
        mean, logvar = encoder(x)
        posterior = torch.distributions.Normal(mean[:, None], (0.5 * logvar).exp()[:, None])
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        table = posterior.log_prob(z[None]).sum(dim=2)  # row: whose posterior, column: whose sample
        return (table.diagonal() - table.logsumexp(dim=0) + torch.tensor(float(len(x))).log()).mean().item()


encoder, decoder = Encoder(), Decoder()
opt_encoder = torch.optim.Adam(encoder.parameters(), lr=4e-3)
opt_decoder = torch.optim.Adam(decoder.parameters(), lr=4e-3)
train, valid = songs(1000), songs(400)
aggressive, best_mi, weight, best = True, 0.0, 0.1, (float("inf"), None)

for epoch in range(EPOCHS):
    for i, x in enumerate(train[torch.randperm(len(train))].split(BATCH)):
        weight = min(1.0, weight + 0.9 / (WARMUP * len(train) / BATCH))
        if aggressive:
            last, recent = float("inf"), []
            for inner in range(MAX_INNER):
                nll, kl = elbo_terms(train[torch.randint(len(train), (BATCH,))])
                opt_encoder.zero_grad()
                (nll + weight * kl).backward()
                opt_encoder.step()
                recent.append((nll + weight * kl).item())
                if len(recent) == CHECK:
                    if sum(recent) / CHECK > last:
                        break
                    last, recent = sum(recent) / CHECK, []
        nll, kl = elbo_terms(x)
        opt_encoder.zero_grad()
        opt_decoder.zero_grad()
        (nll + weight * kl).backward()
        if not aggressive:
            opt_encoder.step()
        opt_decoder.step()
    decoder.eval()
    with torch.no_grad():
        nll, kl = elbo_terms(valid)
    mi = mutual_information(valid)
    decoder.train()
    aggressive, best_mi = aggressive and mi > best_mi, max(mi, best_mi)
    if (nll + kl).item() < best[0]:
        best = (nll + kl).item(), copy.deepcopy([encoder.state_dict(), decoder.state_dict()])
    print(f"epoch {epoch + 1}  nll {nll.item():.3f}  kl {kl.item():.3f}  mi {mi:.3f}  inner loop {aggressive}")
for module, state in zip((encoder, decoder.eval()), best[1]):
    module.load_state_dict(state)
with torch.no_grad():
    print(f"test negative elbo {sum(elbo_terms(songs(1000))).item():.3f}")
