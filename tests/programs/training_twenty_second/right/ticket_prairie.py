"""Per-word tagging of support tickets; each weight is updated as soon as its gradient is there, to save memory."""
import torch
from torch import nn
from torch.nn import functional as F

VOCAB, TAGS, LENGTH, PAD = 90, 5, 14, 0


def tickets(n, gen):
    """The tag of a word depends on the word and on the one before it."""
    words = torch.randint(1, VOCAB, (n, LENGTH), generator=gen)
    before = F.pad(words, (1, 0))[:, :-1]
    tags = (words % TAGS + (before % 3 == 0).long()) % TAGS
    padding = torch.arange(LENGTH) >= torch.randint(6, LENGTH + 1, (n, 1), generator=gen)
    return words.masked_fill(padding, PAD), tags.masked_fill(padding, -100)


class Tagger(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.context = nn.Conv1d(dim, dim, 3, padding=1)
        self.mix = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.tag_head = nn.Linear(dim, TAGS)
        # auxiliary task: keep the word readable from its state, with the input table as output layer
        self.word_head = nn.Linear(dim, VOCAB)
        self.word_head.weight = self.embed.weight

    def forward(self, words):
        x = self.embed(words)
        x = x + F.gelu(self.context(x.transpose(1, 2)).transpose(1, 2))
        x = self.norm(x + F.gelu(self.mix(x)))
        return self.tag_head(x), self.word_head(x)


class EagerAdam:
    """One small Adam per parameter, which steps from within backward; no gradient outlives its own update."""

    def __init__(self, model, lr):
        self.adams = {}
        self.handles = []
        for p in model.parameters():
            self.adams[p] = torch.optim.Adam([p], lr=lr, foreach=False)
            self.handles.append(p.register_post_accumulate_grad_hook(self._update))

    def _update(self, p):
        self.adams[p].step()
        self.adams[p].zero_grad(set_to_none=True)

    def set_lr(self, lr):
        for adam in self.adams.values():
            for group in adam.param_groups:
                group["lr"] = lr

    def close(self):
        for handle in self.handles:
            handle.remove()


def ticket_loss(model, words, tags):
    tag_logits, word_logits = model(words)
    tagging = F.cross_entropy(tag_logits.flatten(0, 1), tags.flatten(), ignore_index=-100)
    copying = F.cross_entropy(word_logits.flatten(0, 1), words.flatten(), ignore_index=PAD)
    return tagging + 0.1 * copying


@torch.no_grad()
def accuracy(model, words, tags):
    real = tags != -100
    return (model(words)[0].argmax(-1) == tags)[real].float().mean().item()


def train(epochs=7, batch_size=32, lr=3e-3):
    torch.manual_seed(19)
    gen = torch.Generator().manual_seed(4)
    words, tags = tickets(1024, gen)
    test_words, test_tags = tickets(256, gen)
    model = Tagger()
    eager = EagerAdam(model, lr)
    for epoch in range(epochs):
        eager.set_lr(lr * (1 - epoch / epochs))
        total = 0.0
        for rows in torch.randperm(len(words)).split(batch_size):
            loss = ticket_loss(model, words[rows], tags[rows])
            loss.backward()
            total += loss.item() * len(rows)
        print(f"epoch {epoch}: loss {total / len(words):.3f}  test accuracy {accuracy(model, test_words, test_tags):.3f}")
    eager.close()
    return model


if __name__ == "__main__":
    model = train()
