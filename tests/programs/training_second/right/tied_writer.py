import torch
from torch import nn
import torch.nn.functional as F


class TiedModel(nn.Module):
    def __init__(self, vocab, dim, context):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.mix = nn.Conv1d(dim, dim, context)
        self.context = context
        self.norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, vocab)
        self.output.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.1)

    def forward(self, ids):
        x = F.pad(self.tokens(ids).transpose(1, 2), (self.context - 1, 0))
        h = F.gelu(self.mix(x)).transpose(1, 2)
        return self.output(self.norm(h))


def parameter_groups(model, decay):
    groups = {True: [], False: []}
    for p in model.parameters():
        groups[p.dim() > 1].append(p)
    return [{"params": groups[True], "weight_decay": decay}, {"params": groups[False], "weight_decay": 0.0}]


def corpus(length, vocab, gen):
    ids = [0, 1]
    jumps = torch.rand(length, generator=gen)
    for r in jumps.tolist():
        ids.append((ids[-1] + ids[-2]) % vocab if r < 0.85 else int(r * 997) % vocab)
    return torch.tensor(ids)


def batches(ids, width, count, gen):
    for _ in range(count):
        starts = torch.randint(0, len(ids) - width - 1, (16, 1), generator=gen)
        window = ids[starts + torch.arange(width + 1)]
        yield window[:, :-1], window[:, 1:]


def main(vocab=11, steps=90):
    torch.manual_seed(91)
    gen = torch.Generator().manual_seed(91)
    ids = corpus(1500, vocab, gen)
    model = TiedModel(vocab, dim=24, context=3)
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=1e-2)
    for step, (x, y) in enumerate(batches(ids[:1200], 20, steps, gen), start=1):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    with torch.no_grad():
        x, y = ids[None, 1200:-1], ids[None, 1201:]
        print(f"held-out accuracy {(model(x).argmax(-1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
