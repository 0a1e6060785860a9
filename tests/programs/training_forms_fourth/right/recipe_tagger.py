import torch
from torch import nn

torch.manual_seed(21)
WORDS, TAGS = 120, 9


class Pantry(torch.utils.data.Dataset):
    def __init__(self, n, rule):
        self.bags = torch.randint(0, WORDS, (n, 14))
        counts = torch.zeros(n, WORDS).scatter_add_(1, self.bags, torch.ones(n, 14))
        self.tags = ((counts @ rule) > 0.8).float()

    def __len__(self):
        return len(self.bags)

    def __getitem__(self, i):
        return {"bag": self.bags[i], "tags": self.tags[i], "minutes": self.tags[i].sum() * 0.3}


class RecipeNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width, mode="sum")
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        self.heads = nn.ModuleDict({"tags": nn.Linear(width, TAGS), "minutes": nn.Linear(width, 1)})

    def forward(self, bag):
        h = self.body(self.words(bag))
        return {name: head(h) for name, head in self.heads.items()}


def micro_f1(found, truth):
    hit = (found & truth).sum().item()
    return 2 * hit / max(1, found.sum().item() + truth.sum().item())


rule = torch.randn(WORDS, TAGS) * 0.5
kitchen, tasting = Pantry(1500, rule), Pantry(400, rule)
feed = torch.utils.data.DataLoader(kitchen, batch_size=50, shuffle=True)
net = RecipeNet()
losses = {"tags": nn.BCEWithLogitsLoss(), "minutes": nn.SmoothL1Loss()}
opt = torch.optim.NAdam(net.parameters(), lr=4e-3)

for epoch in range(5):
    total = 0.0
    for item in feed:
        out = net(item["bag"])
        loss = losses["tags"](out["tags"], item["tags"])
        loss = loss + 0.2 * losses["minutes"](out["minutes"].squeeze(-1), item["minutes"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    with torch.inference_mode():
        odds = torch.special.expit(net(tasting.bags)["tags"])
        found, truth = odds > 0.5, tasting.tags.bool()
    print(f"epoch {epoch}  loss {total / len(feed):.4f}  micro-f1 {micro_f1(found, truth):.4f}  "
          f"tags per recipe {found.sum(1).float().mean():.2f} / {truth.sum(1).float().mean():.2f}")
