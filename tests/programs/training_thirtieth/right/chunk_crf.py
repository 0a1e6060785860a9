"""Chunk tagging with a window network and a CRF, trained with adversarial moves of the word vectors (FGM)."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, DIM = 50, 9, 24
TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
N, FORBIDDEN = len(TAGS), -1e4


def allowed(previous, tag):
    return not tag.startswith("I-") or previous[1:] == tag[1:]


class CRF(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(N))
        self.transitions = nn.Parameter(0.1 * torch.randn(N, N))
        for j, tag in enumerate(TAGS):
            if tag.startswith("I-"):
                self.start.data[j] = FORBIDDEN
            for i, previous in enumerate(TAGS):
                if not allowed(previous, tag):
                    self.transitions.data[i, j] = FORBIDDEN

    def forward(self, emissions, tags):
        """Negative log likelihood of the tag sequences, mean over the batch."""
        gold = self.start[tags[:, 0]] + emissions.gather(2, tags.unsqueeze(2)).squeeze(2).sum(1)
        gold = gold + self.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.size(1)):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, dim=1) + emissions[:, t]
        return (torch.logsumexp(alpha, dim=1) - gold).mean()

    @torch.no_grad()
    def decode(self, emissions):
        score, back = self.start + emissions[:, 0], []
        for t in range(1, emissions.size(1)):
            best, index = (score.unsqueeze(2) + self.transitions).max(dim=1)
            score = best + emissions[:, t]
            back.append(index)
        path = [score.argmax(1, keepdim=True)]
        for index in reversed(back):
            path.insert(0, index.gather(1, path[0]))
        return torch.cat(path, dim=1)


class Chunker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.window = nn.Conv1d(DIM, 32, 3, padding=1)
        self.emit = nn.Linear(32, N)
        self.crf = CRF()

    def emissions(self, words):
        x = self.embed(words).transpose(1, 2)
        return self.emit(F.relu(self.window(x)).transpose(1, 2))

    def loss(self, words, tags):
        return self.crf(self.emissions(words), tags)


class FGM:
    """Moves the embedding along its gradient for one extra backward pass and puts it back."""

    def __init__(self, weight, epsilon):
        self.weight, self.epsilon, self.backup = weight, epsilon, None

    def attack(self):
        self.backup = self.weight.data.clone()
        norm = self.weight.grad.norm()
        if norm > 0:
            self.weight.data.add_(self.weight.grad, alpha=self.epsilon / norm.item())

    def restore(self):
        self.weight.data.copy_(self.backup)


def sample(count, generator):
    """Chunks of two kinds and one to three words; the vocabulary of the kinds overlaps with that outside."""
    words = torch.randint(20, VOCAB, (count, LENGTH), generator=generator)
    tags = torch.zeros(count, LENGTH, dtype=torch.long)
    for row in range(count):
        size, kind = (torch.randint(k, (1,), generator=generator).item() for k in (3, 2))
        at = torch.randint(LENGTH - size, (1,), generator=generator).item()
        span = slice(at, at + size + 1)
        tags[row, span], tags[row, at] = 2 + 2 * kind, 1 + 2 * kind
        words[row, span] = 12 * kind + torch.randint(18, (size + 1,), generator=generator)
    return words, tags


torch.manual_seed(13)
generator = torch.Generator().manual_seed(19)
train_words, train_tags = sample(400, generator)
test_words, test_tags = sample(300, generator)
model = Chunker()
fgm = FGM(model.embed.weight, epsilon=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(100):
    pick = torch.randint(len(train_words), (32,), generator=generator)
    words, tags = train_words[pick], train_tags[pick]
    optimizer.zero_grad()
    loss = model.loss(words, tags)
    loss.backward()
    fgm.attack()
    model.loss(words, tags).backward()
    fgm.restore()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1:3d}  loss {loss.item():.3f}")

with torch.no_grad():
    path = model.crf.decode(model.emissions(test_words))
    test_loss = model.loss(test_words, test_tags).item()
legal = all(allowed(TAGS[a], TAGS[b]) for row in path.tolist() for a, b in zip(row, row[1:]))
print(f"test loss {test_loss:.3f}  tag accuracy {(path == test_tags).float().mean().item():.3f}  legal paths {legal}")
