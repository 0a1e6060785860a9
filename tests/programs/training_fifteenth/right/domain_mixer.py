"""Data mixing by group distributionally robust optimisation (DoReMi style).

A reference model is trained on the uniform mixture. A proxy model then trains with domain weights that move by
exponentiated gradient towards the domains with the largest excess loss. The averaged weights give the final mixture.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
DOMAINS, VOCAB, LENGTH, WIDTH = 4, 14, 12, 40
NOISE = torch.tensor([0.02, 0.10, 0.30, 1.00])  # the last domain is pure noise: nothing to gain there
MULTIPLIER = torch.tensor([3, 5, 9, 1])


def sample(domain, gen):
    """One sequence per entry of `domain`; every domain has its own first-order rule and its own share of noise."""
    n = domain.shape[0]
    seq = torch.randint(0, VOCAB - DOMAINS, (n, LENGTH), generator=gen)
    for t in range(1, LENGTH):
        rule = (MULTIPLIER[domain] * seq[:, t - 1] + domain) % (VOCAB - DOMAINS)
        noisy = torch.rand(n, generator=gen) < NOISE[domain]
        seq[:, t] = torch.where(noisy, seq[:, t], rule)
    seq[:, 0] = VOCAB - DOMAINS + domain
    return seq


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(VOCAB))

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return F.linear(hidden, self.embed.weight, self.bias) / WIDTH ** 0.5


def per_sequence_loss(model, seq):
    logits = model(seq[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), seq[:, 1:], reduction="none").mean(dim=1)


def by_domain(values, domain):
    total = torch.zeros(DOMAINS).index_add(0, domain, values)
    return total / torch.bincount(domain, minlength=DOMAINS).clamp(min=1)


def train_on_mixture(model, mixture, steps, gen):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        domain = torch.multinomial(mixture, 48, replacement=True, generator=gen)
        loss = per_sequence_loss(model, sample(domain, gen)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def domain_losses(model):
    domain = torch.arange(DOMAINS).repeat_interleave(200)
    with torch.no_grad():
        return by_domain(per_sequence_loss(model, sample(domain, torch.Generator().manual_seed(99))), domain)


gen = torch.Generator().manual_seed(1)
start = LM()
uniform = torch.full((DOMAINS,), 1.0 / DOMAINS)
reference = train_on_mixture(copy.deepcopy(start), uniform, 150, gen).requires_grad_(False)
print("reference losses", [round(v, 2) for v in domain_losses(reference).tolist()])

proxy = copy.deepcopy(start)
optimizer = torch.optim.Adam(proxy.parameters(), lr=5e-3)
alpha, alpha_sum, STEPS = uniform.clone(), torch.zeros(DOMAINS), 150
for step in range(STEPS):
    domain = torch.arange(DOMAINS).repeat(12)
    seq = sample(domain, gen)
    loss = by_domain(per_sequence_loss(proxy, seq), domain)
    with torch.no_grad():
        excess = (loss - by_domain(per_sequence_loss(reference, seq), domain)).clamp(min=0)
        alpha = alpha * torch.exp(0.3 * excess)
        alpha = 0.95 * alpha / alpha.sum() + 0.05 * uniform
        alpha_sum += alpha
    optimizer.zero_grad()
    (alpha * loss).sum().backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3d}  weights", [round(v, 2) for v in alpha.tolist()])

mixture = alpha_sum / STEPS
print("averaged weights", [round(v, 2) for v in mixture.tolist()])
final = train_on_mixture(copy.deepcopy(start), mixture, 150, gen)
print("final losses    ", [round(v, 2) for v in domain_losses(final).tolist()])
