"""Word-level translation (toy language pair): likelihood first, then self-critical fine-tuning on the overlap score."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(17)
WORDS, LENGTH, START = 24, 7, 0
DICTIONARY = torch.randperm(WORDS - 1) + 1


def make_pairs(n):
    """Target: every word through the dictionary; a 'verb' (id above 18) moves behind its right neighbour."""
    source = torch.randint(1, WORDS, (n, LENGTH))
    moved = source.clone()
    for k in range(LENGTH - 1):
        verb = moved[:, k] > 18
        left, right = moved[:, k].clone(), moved[:, k + 1].clone()
        moved[:, k] = torch.where(verb, right, left)
        moved[:, k + 1] = torch.where(verb, left, right)
    return source, DICTIONARY[moved - 1]


class Translator(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.src = nn.Embedding(WORDS, dim)
        self.tgt = nn.Embedding(WORDS, dim)
        self.encoder = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(2 * dim, WORDS)

    def step(self, word, state, memory):
        weights = (memory @ state[:, :, None]).squeeze(-1).softmax(-1)
        context = (weights[:, None] @ memory).squeeze(1)
        state = self.cell(torch.cat([self.tgt(word), context], -1), state)
        weights = (memory @ state[:, :, None]).squeeze(-1).softmax(-1)
        context = (weights[:, None] @ memory).squeeze(1)
        return self.out(torch.cat([state, context], -1)), state

    def encode(self, source):
        memory, last = self.encoder(self.src(source))
        return memory, last.transpose(0, 1).flatten(1)

    def forward(self, source, given):
        """Logits for every position when the words before it are given."""
        memory, state = self.encode(source)
        word = torch.full((len(source),), START)
        logits = []
        for k in range(LENGTH):
            step_logits, state = self.step(word, state, memory)
            logits.append(step_logits)
            word = given[:, k]
        return torch.stack(logits, 1)

    @torch.no_grad()
    def decode(self, source, sample):
        memory, state = self.encode(source)
        word = torch.full((len(source),), START)
        words = []
        for _ in range(LENGTH):
            logits, state = self.step(word, state, memory)
            word = Categorical(logits=logits).sample() if sample else logits.argmax(-1)
            words.append(word)
        return torch.stack(words, 1)


def overlap(hypothesis, target):
    """Mean of unigram and bigram precision by position."""
    same = (hypothesis == target).float()
    return 0.5 * same.mean(1) + 0.5 * (same[:, 1:] * same[:, :-1]).mean(1)


source, target = make_pairs(1600)
test_source, test_target = make_pairs(400)
model = Translator()

optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    for idx in torch.randperm(len(source)).split(64):
        loss = F.cross_entropy(model(source[idx], target[idx]).transpose(1, 2), target[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"likelihood training: loss {loss.item():.3f}  test overlap {overlap(model.decode(test_source, False), test_target).mean():.3f}")

optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
for step in range(60):
    idx = torch.randint(len(source), (128,))
    sampled = model.decode(source[idx], sample=True)
    baseline = overlap(model.decode(source[idx], sample=False), target[idx])
    advantage = overlap(sampled, target[idx]) - baseline
    log_prob = Categorical(logits=model(source[idx], sampled)).log_prob(sampled).sum(1)
    loss = -(advantage * log_prob).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 19:
        greedy = overlap(model.decode(test_source, False), test_target).mean()
        drawn = overlap(model.decode(test_source, True), test_target).mean()
        print(f"self-critical step {step + 1}: test overlap greedy {greedy:.3f}  sampled {drawn:.3f}")
