"""A count autoencoder for single cells: negative binomial likelihood, tied decoder, batch effects by offsets.

The encoder is trained more often than the decoder at the start, until its posterior has caught up (He et al., 2019).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 21
GENES, TYPES, LABS = 80, 5, 2
N, LATENT = 1500, 6
EPOCHS, AGGRESSIVE, INNER = 14, 4, 4


def make_cells(gen):
    kind = torch.randint(0, TYPES, (N,), generator=gen)
    lab = torch.randint(0, LABS, (N,), generator=gen)
    program = torch.randn(TYPES, GENES, generator=gen) * 0.9
    lab_shift = torch.randn(LABS, GENES, generator=gen) * 0.4
    depth = 200 + 800 * torch.rand(N, 1, generator=gen)
    mean = depth * (program[kind] + lab_shift[lab]).softmax(1)
    rate = torch.distributions.Gamma(4.0, 4.0 / mean).sample()
    return torch.poisson(rate), kind, lab


class CellVAE(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.lift = nn.Linear(GENES, width)
        self.mu = nn.Linear(width, LATENT)
        self.log_var = nn.Linear(width, LATENT)
        self.up = nn.Linear(LATENT, width)
        self.gene_bias = nn.Parameter(torch.zeros(GENES))
        self.lab_offset = nn.Embedding(LABS, GENES)
        self.log_theta = nn.Parameter(torch.zeros(GENES))
        nn.init.zeros_(self.lab_offset.weight)

    def encoder_parameters(self):
        return [*self.mu.parameters(), *self.log_var.parameters(), self.lift.bias]

    def decoder_parameters(self):
        # the gene loadings are shared by both halves (lift.weight and its transpose) and belong to the slow half
        own = [self.lift.weight, self.gene_bias, self.log_theta]
        return own + [*self.up.parameters(), *self.lab_offset.parameters()]

    def encode(self, counts):
        h = F.softplus(self.lift(torch.log1p(counts)))
        return self.mu(h), self.log_var(h).clamp(-6, 3)

    def decode(self, z, lab, depth):
        logits = torch.tanh(self.up(z)) @ self.lift.weight + self.gene_bias + self.lab_offset(lab)
        return depth * logits.softmax(1)

    def loss(self, counts, lab, beta):
        mu, log_var = self.encode(counts)
        z = mu + (0.5 * log_var).exp() * torch.randn_like(mu)
        depth = counts.sum(1, keepdim=True)
        mean, theta = self.decode(z, lab, depth), self.log_theta.exp()
        nll = -(torch.lgamma(counts + theta) - torch.lgamma(theta) - torch.lgamma(counts + 1)
                + theta * (theta / (theta + mean)).log() + counts * ((mean + 1e-8) / (theta + mean)).log())
        kl = 0.5 * (mu.square() + log_var.exp() - 1 - log_var).sum(1)
        return nll.sum(1).mean() + beta * kl.mean(), kl.mean().detach()


def train(model, counts, lab):
    fast = torch.optim.Adam(model.encoder_parameters(), lr=3e-3)
    slow = torch.optim.Adam(model.decoder_parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        beta = min(1.0, 0.2 + epoch / 6)
        inner = INNER if epoch < AGGRESSIVE else 1
        for idx in torch.randperm(N).split(150):
            for k in range(inner):
                pick = idx if k == inner - 1 else torch.randint(0, N, (150,))
                loss, kl = model.loss(counts[pick], lab[pick], beta)
                model.zero_grad()
                loss.backward()
                fast.step()
            slow.step()  # with the gradients of the last inner pass
        if epoch % 4 == 1:
            print(f"epoch {epoch:2d}  loss {loss.item():.2f}  kl {kl.item():.2f}  beta {beta:.2f}")


@torch.no_grad()
def neighbour_purity(model, counts, kind, lab):
    mu, _ = model.encode(counts)
    near = torch.cdist(mu, mu).fill_diagonal_(float("inf")).topk(15, largest=False).indices
    same_kind = (kind[near] == kind.unsqueeze(1)).float().mean().item()
    return same_kind, (lab[near] == lab.unsqueeze(1)).float().mean().item()


torch.manual_seed(SEED)
counts, kind, lab = make_cells(torch.Generator().manual_seed(SEED))
model = CellVAE()
print("neighbours of equal type, lab before: %.3f %.3f" % neighbour_purity(model, counts, kind, lab))
train(model, counts, lab)
print("neighbours of equal type, lab after:  %.3f %.3f" % neighbour_purity(model, counts, kind, lab))
