"""Add a handful of domain tokens to a small pretrained language model and learn only their vectors."""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, NEW, DIM, LENGTH = 28, 4, 32, 11


class BaseLanguage:
    """A first order Markov language over the base vocabulary."""

    def __init__(self, generator):
        self.generator = generator
        self.table = torch.softmax(2.5 * torch.randn(VOCAB, VOCAB, generator=generator), dim=-1)

    def sample(self, count, length=LENGTH):
        token = torch.randint(VOCAB, (count, 1), generator=self.generator)
        out = [token]
        for _ in range(length - 1):
            token = torch.multinomial(self.table[token.squeeze(1)], 1, generator=self.generator)
            out.append(token)
        return torch.cat(out, dim=1)


class DomainLanguage(BaseLanguage):
    """Base sentences in which a domain token stands for one of the words it is a synonym of."""

    def __init__(self, base, generator):
        self.generator, self.table = generator, base.table
        self.synonym = torch.randperm(VOCAB, generator=generator)[:NEW]

    def sample(self, count, length=LENGTH):
        text = super().sample(count, length)
        for k, word in enumerate(self.synonym):
            text[text == word] = VOCAB + k
        return text


class TiedGRU(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        nn.init.normal_(self.embed.weight, std=0.3)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return F.linear(hidden, self.embed.weight)

    def resize_vocabulary(self, extra):
        old = self.embed.weight.data
        self.embed = nn.Embedding(old.size(0) + extra, old.size(1))
        self.embed.weight.data[: old.size(0)] = old
        self.embed.weight.data[old.size(0):] = old.mean(dim=0) + 0.02 * torch.randn(extra, old.size(1))


def lm_loss(model, text):
    logits = model(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


@torch.no_grad()
def perplexity(model, text):
    return math.exp(lm_loss(model, text).item())


def train_only_new_rows(model, extra):
    for p in model.rnn.parameters():
        p.requires_grad_(False)
    weight = model.embed.weight
    row_mask = torch.zeros(weight.size(0), 1)
    row_mask[-extra:] = 1.0
    weight.register_hook(lambda grad: grad * row_mask)
    return [weight]


def pretrain(model, language, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=0.01)
    for _ in range(steps):
        loss = lm_loss(model, language.sample(32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def learn_tokens(model, language, steps):
    trainable = train_only_new_rows(model, NEW)
    optimizer = torch.optim.AdamW(trainable, lr=2e-2, weight_decay=0.1)
    for step in range(steps):
        loss = lm_loss(model, language.sample(24))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"  step {step:3d}  domain loss {loss.item():.3f}")


torch.manual_seed(11)
generator = torch.Generator().manual_seed(3)
base = BaseLanguage(generator)
domain = DomainLanguage(base, generator)
base_test, domain_test = base.sample(256), domain.sample(256)

model = TiedGRU(VOCAB, DIM)
print(f"pretraining loss {pretrain(model, base, 70):.3f}")
model.resize_vocabulary(NEW)
ppl_before = perplexity(model, base_test), perplexity(model, domain_test)
rows_before = model.embed.weight.detach().clone()
learn_tokens(model, domain, 100)
ppl_after = perplexity(model, base_test), perplexity(model, domain_test)
print(f"base perplexity   {ppl_before[0]:.2f} -> {ppl_after[0]:.2f}")
print(f"domain perplexity {ppl_before[1]:.2f} -> {ppl_after[1]:.2f}")
