"""Extends the vocabulary of a small pretrained language model with domain tokens.

The network and the old token vectors stay as they were, so that general text is modelled as before;
only the vectors of the new tokens are learned, from a small corpus of the domain.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
OLD, NEW, DIM, CONTEXT = 60, 12, 40, 4


class TinyLM(nn.Module):
    """Reads the last CONTEXT tokens; input and output share the token vectors."""

    def __init__(self, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, DIM)
        nn.init.normal_(self.tokens.weight, std=0.3)
        self.hidden = nn.Linear(CONTEXT * DIM, 96)
        self.project = nn.Linear(96, DIM)

    def forward(self, windows):
        h = F.gelu(self.hidden(self.tokens(windows).flatten(1)))
        return self.project(h) @ self.tokens.weight.T

    def grow(self, extra):
        old = self.tokens.weight.data
        self.tokens = nn.Embedding(len(old) + extra, DIM)
        with torch.no_grad():
            self.tokens.weight[: len(old)] = old
            self.tokens.weight[len(old):] = old.mean(0) + 0.02 * torch.randn(extra, DIM)


def sample_text(n, table, gen):
    """Second-order chains: the next token depends on the last one and the one before it."""
    text = torch.randint(0, OLD, (n, CONTEXT + 14), generator=gen)
    for t in range(2, text.shape[1]):
        state = text[:, t - 1] * 2 + text[:, t - 2] // (OLD // 2)
        text[:, t] = torch.multinomial(table[state], 1, generator=gen)[:, 0]
    return text


def with_domain_words(text, gen):
    """Writes some words of the text in the jargon of the domain."""
    jargon = (text % 5 == 0) & (torch.rand(text.shape, generator=gen) < 0.8)
    return torch.where(jargon, OLD + text // 5, text)


def windows_of(text):
    rows = text.unfold(1, CONTEXT + 1, 1).reshape(-1, CONTEXT + 1)
    return rows[:, :-1], rows[:, -1]


def train(model, optimizer, text, steps, batch=256):
    contexts, targets = windows_of(text)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, total_iters=30)
    for step in range(steps):
        pick = torch.randint(len(contexts), (batch,))
        loss = F.cross_entropy(model(contexts[pick]), targets[pick])
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
    return loss.item()


@torch.no_grad()
def perplexity(model, text):
    contexts, targets = windows_of(text)
    return F.cross_entropy(model(contexts), targets).exp().item()


gen = torch.Generator().manual_seed(2)
table = torch.softmax(3.5 * torch.randn(2 * OLD, OLD, generator=gen), dim=1)
general, general_test = sample_text(900, table, gen), sample_text(200, table, gen)
domain = with_domain_words(sample_text(250, table, gen), gen)
domain_test = with_domain_words(sample_text(200, table, gen), gen)

model = TinyLM(OLD)
train(model, torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1), general, steps=600)
print(f"pretrained: general perplexity {perplexity(model, general_test):.2f}")

model.grow(NEW)
for name, parameter in model.named_parameters():
    parameter.requires_grad_(name == "tokens.weight")
is_new = (torch.arange(OLD + NEW) >= OLD).float()[:, None]
model.tokens.weight.register_hook(lambda grad: grad * is_new)
print(f"grown: domain perplexity {perplexity(model, domain_test):.2f}")

optimizer = torch.optim.AdamW([model.tokens.weight], lr=1e-2, weight_decay=0.1)
last = train(model, optimizer, domain, steps=450)
print(f"adapted: last loss {last:.3f}, domain perplexity {perplexity(model, domain_test):.2f}")
print(f"adapted: general perplexity {perplexity(model, general_test):.2f}")
