"""Part-of-speech tagging with the fast gradient method: each step also learns from perturbed word embeddings."""
import torch
from torch import nn
import torch.nn.functional as F

WORDS, TAGS, LENGTH, PAD = 60, 5, 9, 0


class Grammar:
    """A word's tag is given by the word, except for ambiguous words, whose tag follows the word before."""

    def __init__(self, generator):
        self.generator = generator
        self.lexicon = torch.randint(0, TAGS, (WORDS,), generator=generator)
        self.ambiguous = torch.rand(WORDS, generator=generator) < 0.3

    def sample(self, count):
        words = torch.randint(1, WORDS, (count, LENGTH), generator=self.generator)
        tags = self.lexicon[words]
        for t in range(1, LENGTH):
            follow = (tags[:, t - 1] + 1) % TAGS
            tags[:, t] = torch.where(self.ambiguous[words[:, t]], follow, tags[:, t])
        lengths = torch.randint(4, LENGTH + 1, (count,), generator=self.generator)
        padding = torch.arange(LENGTH) >= lengths[:, None]
        return words.masked_fill(padding, PAD), tags.masked_fill(padding, -100)


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(hidden + dim, TAGS)

    def forward(self, words):
        embedded = self.dropout(self.embed(words))
        states, _ = self.rnn(embedded)
        return self.output(torch.cat([states, embedded], dim=-1))


class FastGradient:
    """Moves the embedding table along its gradient for a moment, then puts it back."""

    def __init__(self, weight, epsilon):
        self.weight, self.epsilon = weight, epsilon
        self.saved = None

    def attack(self):
        self.saved = self.weight.data.clone()
        norm = self.weight.grad.norm()
        if norm > 0:
            self.weight.data.add_(self.weight.grad, alpha=(self.epsilon / norm).item())

    def restore(self):
        self.weight.data.copy_(self.saved)
        self.saved = None


def tag_loss(model, words, tags):
    return F.cross_entropy(model(words).flatten(0, 1), tags.flatten(), ignore_index=-100)


def train(model, grammar, steps):
    fgm = FastGradient(model.embed.weight, epsilon=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for step in range(1, steps + 1):
        words, tags = grammar.sample(32)
        optimizer.zero_grad()
        loss = tag_loss(model, words, tags)
        loss.backward()
        fgm.attack()
        adversarial = tag_loss(model, words, tags)
        adversarial.backward()
        fgm.restore()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}  perturbed {adversarial.item():.3f}")


@torch.no_grad()
def accuracy(model, words, tags):
    model.eval()
    known = tags >= 0
    return (model(words).argmax(-1)[known] == tags[known]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(31)
    grammar = Grammar(torch.Generator().manual_seed(32))
    test_words, test_tags = grammar.sample(200)
    model = Tagger()
    print(f"accuracy before {accuracy(model, test_words, test_tags):.3f}")
    train(model, grammar, 90)
    print(f"accuracy after {accuracy(model, test_words, test_tags):.3f}")
