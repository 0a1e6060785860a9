import torch
import torch.nn as nn
import torch.nn.functional as F


class TiedLM(nn.Module):
    def __init__(self, vocab=32, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, depth, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.decode = nn.Linear(dim, vocab, bias=False)
        self.reset_parameters()
        self.tie()

    def reset_parameters(self):
        nn.init.normal_(self.embed.weight, std=0.1)
        nn.init.normal_(self.decode.weight, std=0.1)

    def tie(self):
        self.decode.weight = self.embed.weight

    def grow(self, extra):
        old = self.embed.weight.data
        fresh = nn.Embedding(len(old) + extra, old.shape[1])
        fresh.weight.data[: len(old)] = old
        fresh.weight.data[len(old) :] = old.mean(dim=0) + 0.02 * torch.randn(extra, old.shape[1])
        self.embed = fresh
        self.decode = nn.Linear(old.shape[1], len(old) + extra, bias=False)
        self.tie()

    def forward(self, ids):
        return self.decode(self.norm(self.rnn(self.embed(ids))[0]))


def param_groups(model, weight_decay):
    seen, decay, plain = set(), [], []
    for name, p in model.named_parameters(remove_duplicate=False):
        if id(p) in seen:
            continue
        seen.add(id(p))
        (decay if p.ndim >= 2 and "embed" not in name else plain).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def make_recipes(vocab, size=32, length=12):
    start = torch.randint(0, vocab, (size, 1))
    stride = torch.randint(1, 3, (size, 1))
    return (start + stride * torch.arange(length)) % vocab


def train(model, vocab, steps, lr):
    optimizer = torch.optim.AdamW(param_groups(model, 0.05), lr=lr)
    for step in range(steps):
        seq = make_recipes(vocab)
        logits = model(seq[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"vocab {vocab} loss {loss.item():.4f} groups {[len(g['params']) for g in optimizer.param_groups]}")


def main():
    torch.manual_seed(0)
    model = TiedLM()
    train(model, 32, 50, 5e-3)
    model.grow(8)
    train(model, 40, 50, 3e-3)
    print("shared", model.decode.weight is model.embed.weight)
    return model


if __name__ == "__main__":
    model = main()
