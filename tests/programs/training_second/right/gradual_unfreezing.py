import torch
import torch.nn.functional as F
from torch import nn


class Backbone(nn.Module):
    def __init__(self, vocab=40, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, ids):
        states, _ = self.rnn(self.embed(ids))
        return states


def pretrain(backbone, ids, steps):
    predictor = nn.Linear(32, 40)
    optimizer = torch.optim.Adam([*backbone.parameters(), *predictor.parameters()], lr=5e-3)
    for _ in range(steps):
        batch = ids[torch.randint(0, len(ids), (32,))]
        logits = predictor(backbone(batch[:, :-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining loss {loss.item():.4f}")


def release(optimizer, module, lr):
    module.requires_grad_(True)
    optimizer.add_param_group({"params": list(module.parameters()), "lr": lr})


def main():
    torch.manual_seed(0)
    start = torch.randint(0, 40, (192, 1))
    stride = torch.randint(1, 3, (192, 1))
    ids = (start + stride * torch.arange(12)) % 40
    labels = stride.squeeze(1) - 1
    backbone = Backbone()
    pretrain(backbone, ids, 30)

    backbone.requires_grad_(False)
    head = nn.Sequential(nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(head.parameters(), lr=5e-3)
    schedule = {2: (backbone.rnn, 1e-3), 4: (backbone.embed, 5e-4)}
    for epoch in range(6):
        if epoch in schedule:
            release(optimizer, *schedule[epoch])
        hits = 0
        for idx in torch.randperm(len(ids)).split(48):
            logits = head(backbone(ids[idx])[:, -1])
            loss = F.cross_entropy(logits, labels[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(1) == labels[idx]).sum().item()
        print(f"epoch {epoch} groups {len(optimizer.param_groups)} loss {loss.item():.4f} acc {hits / len(ids):.3f}")


if __name__ == "__main__":
    main()
