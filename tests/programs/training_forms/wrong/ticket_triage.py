from typing import NamedTuple
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(29)
VOCAB, WIDTH, TOPICS = 50, 24, 3


class Batch(NamedTuple):
    words: torch.Tensor
    valid: torch.Tensor
    topic: torch.Tensor


def make_batch(n, longest=14):
    topic = torch.randint(TOPICS, (n,))
    sizes = torch.randint(4, longest, (n,))
    words = torch.randint(1, VOCAB, (n, longest))
    themed = torch.rand(n, longest) < 0.3
    words = torch.where(themed, 1 + topic[:, None] * 5 + words % 5, words)
    valid = torch.arange(longest) < sizes[:, None]
    return Batch(words * valid, valid, topic)


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.place = nn.Parameter(torch.randn(14, WIDTH) * 0.02)
        block = nn.TransformerEncoderLayer(WIDTH, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.topic = nn.Linear(WIDTH, TOPICS)

    def forward(self, batch):
        h = self.words(batch.words) + self.place
        h = self.encoder(h, src_key_padding_mask=batch.valid)
        h = h.masked_fill(~batch.valid.unsqueeze(-1), 0.0)
        return self.topic(h.sum(1) / batch.valid.sum(1, keepdim=True))


net = Triage()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
test = make_batch(200)
for step in range(1, 61):
    batch = make_batch(48)
    loss = F.cross_entropy(net(batch), batch.topic)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 15 == 0:
        with torch.no_grad():
            hit = (net(test).argmax(1) == test.topic).float().mean().item()
        print(f"step {step} loss {loss.item():.4f} test accuracy {hit:.3f}")
