"""Toy translation: the decoder learns at every batch, the encoder once per four batches with the averaged gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)

VOCAB, LENGTH, HIDDEN, EVERY = 10, 5, 48, 4
mapping = torch.randperm(VOCAB)


def batch(n):
    source = torch.randint(VOCAB, (n, LENGTH))
    return source, mapping[source].flip(1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.position = nn.Parameter(0.1 * torch.randn(LENGTH, 24))
        self.layer = nn.TransformerEncoderLayer(24, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(self.embed(x) + self.position)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, 24)
        self.gru = nn.GRU(24, HIDDEN, batch_first=True)
        self.query = nn.Linear(HIDDEN, 24)
        self.out = nn.Linear(HIDDEN + 24, VOCAB)

    def forward(self, memory, previous):
        h, _ = self.gru(self.embed(previous))
        attention = (self.query(h) @ memory.transpose(1, 2)).softmax(-1)
        return self.out(torch.cat([h, attention @ memory], -1))


encoder, decoder = Encoder(), Decoder()
fast = torch.optim.Adam(decoder.parameters(), lr=4e-3)
slow = torch.optim.Adam(encoder.parameters(), lr=8e-3)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(fast, 400)
slow_decay = torch.optim.lr_scheduler.CosineAnnealingLR(slow, 400 // EVERY)


def shifted(y):
    return torch.cat([torch.full((len(y), 1), VOCAB), y[:, :-1]], 1)


slow.zero_grad()
for step in range(1, 401):
    x, y = batch(32)
    fast.zero_grad()
    logits = decoder(encoder(x), shifted(y))
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    fast.step()
    decay.step()
    if step % EVERY == 0:  # four batches lie in the encoder's gradients
        for p in encoder.parameters():
            p.grad.div_(EVERY)
        slow.step()
        slow_decay.step()
        slow.zero_grad()
    if step % 100 == 0:
        with torch.no_grad():
            tx, ty = batch(256)
            accuracy = (decoder(encoder(tx), shifted(ty)).argmax(-1) == ty).float().mean()
        print(f"step {step}  loss {loss.item():.3f}  token accuracy {accuracy:.3f}")
