import torch
import torch.nn.functional as F
from torch import nn

TEXT = "she sells sea shells by the sea shore the shells she sells are surely sea shells " * 15


class TiedLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.conv = nn.ModuleList([nn.Conv1d(dim, 2 * dim, 3) for _ in range(2)])
        self.norm = nn.LayerNorm(dim)
        self.decoder = nn.Linear(dim, vocab)
        nn.init.normal_(self.embed.weight, std=dim**-0.5)
        self.decoder.weight = self.embed.weight

    def forward(self, ids):
        h = self.embed(ids).transpose(1, 2)
        for conv in self.conv:
            h = h + F.glu(conv(F.pad(h, (2, 0))), 1)
        return self.decoder(self.norm(h.transpose(1, 2)))


def param_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def main():
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT])
    windows = data.unfold(0, 25, 6)
    model = TiedLM(len(letters), 32)
    optimizer = torch.optim.AdamW(param_groups(model, 0.01), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    step = 0
    for epoch in range(5):
        for idx in torch.randperm(len(windows)).split(40):
            batch = windows[idx]
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, len(letters)), batch[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            step += 1
        print(f"epoch {epoch} step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
