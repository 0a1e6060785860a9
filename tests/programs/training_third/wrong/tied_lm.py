import torch
from torch import nn
import torch.nn.functional as F


class CharModel(nn.Module):
    def __init__(self, vocab=27, width=24, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.apply(self._init)
        self.share_vocabulary()

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.08)

    def share_vocabulary(self):
        self.head.weight = nn.Parameter(self.embed.weight)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.head(torch.tanh(self.proj(states)))


def markov_text(n, vocab, seed):
    g = torch.Generator().manual_seed(seed)
    table = torch.softmax(3 * torch.randn(vocab, vocab, generator=g), dim=-1)
    out = [0]
    for _ in range(n - 1):
        out.append(torch.multinomial(table[out[-1]], 1, generator=g).item())
    return torch.tensor(out)


def windows(stream, length, batch, g):
    start = torch.randint(0, len(stream) - length - 1, (batch,), generator=g)
    idx = start[:, None] + torch.arange(length + 1)
    chunk = stream[idx]
    return chunk[:, :-1], chunk[:, 1:]


def fit(model, stream, steps=40, lr=3e-3):
    g = torch.Generator().manual_seed(5)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    for step in range(steps):
        x, y = windows(stream, 16, 32, g)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return opt


if __name__ == "__main__":
    torch.manual_seed(0)
    stream = markov_text(1200, 27, seed=3)
    model = CharModel()
    assert model.head.weight.data_ptr() == model.embed.weight.data_ptr()
    optimizer = fit(model, stream)
    print("parameters", sum(p.numel() for p in model.parameters()))
