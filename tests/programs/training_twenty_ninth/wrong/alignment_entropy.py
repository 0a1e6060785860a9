"""Translation between two toy languages with an attentional encoder-decoder; reports how sharp the alignments get."""
import torch
from torch import nn
import torch.nn.functional as F

WORDS, LENGTH, BOS = 30, 7, 30
STEPS, REPORT = 90, 30


class Lexicon:
    """The target sentence is the source sentence read backwards with each word replaced by its translation."""

    def __init__(self, generator):
        self.generator = generator
        self.mapping = torch.randperm(WORDS, generator=generator)

    def sentences(self, count):
        source = torch.randint(0, WORDS, (count, LENGTH), generator=self.generator)
        target = self.mapping[source].flip(1)
        shifted = torch.cat([torch.full((count, 1), BOS), target[:, :-1]], dim=1)
        return source, shifted, target


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.scale = dim ** -0.5
        self.entropies = []

    def forward(self, states, memory):
        scores = self.query(states) @ memory.transpose(1, 2) * self.scale
        log_weights = scores.log_softmax(-1)
        weights = log_weights.exp()
        if self.training:
            self.entropies.append(-(weights * log_weights).sum(-1).mean())
        return weights @ memory, weights


class Translator(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.source_embed = nn.Embedding(WORDS, dim)
        self.source_position = nn.Parameter(0.1 * torch.randn(LENGTH, dim))
        self.target_embed = nn.Embedding(WORDS + 1, dim)
        self.target_position = nn.Parameter(0.1 * torch.randn(LENGTH, dim))
        self.encoder = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, dim))
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.attention = Attention(dim)
        self.output = nn.Linear(2 * dim, WORDS)

    def encode(self, source):
        embedded = self.source_embed(source) + self.source_position
        return embedded + self.encoder(embedded)

    def forward(self, source, shifted):
        memory = self.encode(source)
        states, _ = self.decoder(self.target_embed(shifted) + self.target_position[: shifted.shape[1]])
        context, _ = self.attention(states, memory)
        return self.output(torch.cat([states, context], dim=-1))

    @torch.no_grad()
    def translate(self, source):
        tokens = torch.full((len(source), 1), BOS)
        for _ in range(LENGTH):
            logits = self(source, tokens)
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
        return tokens[:, 1:]


def word_accuracy(model, lexicon):
    model.eval()
    source, _, target = lexicon.sentences(60)
    correct = (model.translate(source) == target).float().mean().item()
    model.train()
    return correct


def train(model, lexicon, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, total_iters=steps)
    running = 0.0
    for step in range(1, steps + 1):
        source, shifted, target = lexicon.sentences(24)
        logits = model(source, shifted)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        running += loss.item()
        if step % REPORT == 0:
            sharpness = torch.stack(model.attention.entropies[-REPORT:]).mean().item()
            accuracy = word_accuracy(model, lexicon)
            print(f"step {step:4d}  loss {running / REPORT:.3f}  entropy {sharpness:.3f}  words {accuracy:.3f}")
            running = 0.0


def main():
    torch.manual_seed(3)
    lexicon = Lexicon(torch.Generator().manual_seed(4))
    model = Translator()
    train(model, lexicon, STEPS)
    first, last = model.attention.entropies[0].item(), model.attention.entropies[-1].item()
    print(f"alignment entropy {first:.3f} -> {last:.3f} over {len(model.attention.entropies)} updates")
    return model


if __name__ == "__main__":
    model = main()
