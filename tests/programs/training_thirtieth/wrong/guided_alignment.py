"""Attentional translation with guided alignment: word alignments supervise the attention weights."""
import torch
import torch.nn.functional as F
from torch import nn

SRC, WORDS, LENGTH, DIM = 30, 8, 8, 24
BOS = WORDS


class ToyBitext:
    """Every source word has one translation, shared by its synonyms; the target swaps the halves of the sentence."""

    def __init__(self, generator):
        self.generator = generator
        self.lexicon = torch.randint(WORDS, (SRC,), generator=generator)
        half = LENGTH // 2
        self.order = torch.tensor([*range(half, LENGTH), *range(half)])

    def sample(self, count):
        source = torch.randint(SRC, (count, LENGTH), generator=self.generator)
        target = self.lexicon[source[:, self.order]]
        alignment = F.one_hot(self.order, LENGTH).float().expand(count, -1, -1)
        return source, target, alignment


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SRC, DIM)
        self.position = nn.Embedding(LENGTH, DIM)
        self.rnn = nn.GRU(DIM, DIM // 2, batch_first=True, bidirectional=True)

    def forward(self, source):
        memory, last = self.rnn(self.embed(source) + self.position.weight)
        return memory, torch.cat([last[0], last[1]], dim=-1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS + 1, DIM)
        self.cell = nn.GRUCell(2 * DIM, DIM)
        self.query = nn.Linear(DIM, DIM)
        self.out = nn.Linear(2 * DIM, WORDS)

    def forward(self, memory, state, inputs):
        context = memory.mean(dim=1)
        logits, maps = [], []
        for word in inputs.unbind(dim=1):
            state = self.cell(torch.cat([self.embed(word), context], dim=-1), state)
            scores = torch.einsum("bd,bsd->bs", self.query(state), memory)
            weights = F.softmax(scores, dim=-1)
            context = torch.einsum("bs,bsd->bd", weights, memory)
            logits.append(self.out(torch.cat([state, context], dim=-1)))
            maps.append(weights.detach())
        return torch.stack(logits, dim=1), torch.stack(maps, dim=1)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, source, target):
        memory, state = self.encoder(source)
        start = torch.full_like(target[:, :1], BOS)
        return self.decoder(memory, state, torch.cat([start, target[:, :-1]], dim=1))


def alignment_loss(maps, alignment):
    return -(alignment * (maps + 1e-8).log()).sum(dim=-1).mean()


def losses(model, source, target, alignment):
    logits, maps = model(source, target)
    translation = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    return translation, alignment_loss(maps, alignment), maps


@torch.no_grad()
def evaluate(model, batch):
    model.eval()
    translation, guided, maps = losses(model, *batch)
    model.train()
    error = (maps.argmax(-1) != batch[2].argmax(-1)).float().mean()
    return translation.item(), guided.item(), error.item()


torch.manual_seed(21)
bitext = ToyBitext(torch.Generator().manual_seed(6))
test_batch = bitext.sample(200)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
weight = 1.0

for step in range(70):
    translation, guided, _ = losses(model, *bitext.sample(32))
    loss = translation + weight * guided
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    if step % 14 == 13:
        print(f"step {step + 1:3d}  translation {translation.item():.3f}  alignment {guided.item():.3f}")

test_translation, test_guided, alignment_error = evaluate(model, test_batch)
print(f"test translation loss {test_translation:.3f}  alignment loss {test_guided:.3f}  AER {alignment_error:.3f}")
