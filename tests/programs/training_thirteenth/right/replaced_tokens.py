"""Replaced-token detection in the style of ELECTRA, on sentences of a small synthetic language.

A small generator fills in masked positions at a high temperature, a discriminator finds the filled-in
tokens that are not the original ones. The discriminator reads the generator's token vectors plus a
difference of its own (DeBERTa-v3), so that its loss does not pull at the vectors of the generator.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)
VOCAB, DIM, LENGTH, MASK, CLASSES = 41, 32, 12, 0, 8


def make_language(n, gen):
    """The class of a word follows from the class before; most words keep to the dialect of the sentence."""
    start = torch.randint(0, CLASSES, (n, 1), generator=gen)
    classes = (start + 3 * torch.arange(LENGTH)) % CLASSES
    words_per_class = (VOCAB - 1) // CLASSES
    dialect = torch.randint(0, words_per_class, (n, 1), generator=gen)
    borrowed = torch.randint(0, words_per_class, (n, LENGTH), generator=gen)
    style = torch.where(torch.rand(n, LENGTH, generator=gen) < 0.05, borrowed, dialect)
    return 1 + classes * words_per_class + style


class Body(nn.Module):
    """One transformer block that is applied several times."""

    def __init__(self, dim, heads, hidden, repeats):
        super().__init__()
        self.repeats = repeats
        self.position = nn.Parameter(0.3 * torch.randn(LENGTH, dim))
        self.block = nn.TransformerEncoderLayer(dim, heads, hidden, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, vectors):
        h = vectors + self.position
        for _ in range(self.repeats):
            h = self.block(h)
        return self.norm(h)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM)
        nn.init.normal_(self.tokens.weight, std=0.3)
        self.body = Body(DIM, 2, 32, repeats=1)

    def forward(self, ids):
        return self.body(self.tokens(ids)) @ self.tokens.weight.T


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.difference = nn.Parameter(torch.zeros(VOCAB, DIM))
        self.body = Body(DIM, 4, 64, repeats=2)
        self.head = nn.Linear(DIM, 1)

    def forward(self, ids, shared):
        vectors = F.embedding(ids, shared.detach() + self.difference)
        return self.head(self.body(vectors)).squeeze(-1)


def corrupt(generator, ids, rate=0.2, temperature=3.0):
    masked = torch.rand(ids.shape) < rate
    masked[:, 0] |= ~masked.any(1)
    logits = generator(ids.masked_fill(masked, MASK))[masked]
    filled = torch.distributions.Categorical(logits=logits.detach() / temperature).sample()
    corrupted = ids.clone()
    corrupted[masked] = filled
    return F.cross_entropy(logits, ids[masked]), corrupted, (corrupted != ids).float()


@torch.no_grad()
def detection(generator, discriminator, ids):
    generator.eval(), discriminator.eval()
    _, corrupted, replaced = corrupt(generator, ids)
    flagged = discriminator(corrupted, generator.tokens.weight) > 0
    generator.train(), discriminator.train()
    hits = (flagged & replaced.bool()).sum()
    return (hits / flagged.sum().clamp(min=1)).item(), (hits / replaced.sum()).item()


data_gen = torch.Generator().manual_seed(12)
train_ids, test_ids = make_language(3000, data_gen), make_language(400, data_gen)
generator, discriminator = Generator(), Discriminator()
optimizer = torch.optim.AdamW([*generator.parameters(), *discriminator.parameters()], lr=6e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=240, pct_start=0.15)

for step in range(240):
    batch = train_ids[torch.randint(len(train_ids), (48,))]
    mlm_loss, corrupted, replaced = corrupt(generator, batch)
    rtd_loss = F.binary_cross_entropy_with_logits(discriminator(corrupted, generator.tokens.weight), replaced)
    optimizer.zero_grad()
    (mlm_loss + 10 * rtd_loss).backward()
    optimizer.step()
    schedule.step()
    if (step + 1) % 60 == 0:
        print(f"step {step + 1}: generator loss {mlm_loss.item():.3f}, discriminator loss {rtd_loss.item():.3f}")

precision, recall = detection(generator, discriminator, test_ids)
print(f"test: precision {precision:.3f}, recall {recall:.3f}, "
      f"size of the difference {discriminator.difference.norm(dim=1).mean().item():.3f}")
