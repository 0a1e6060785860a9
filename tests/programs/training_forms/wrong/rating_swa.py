import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(17)
USERS, ITEMS, RANK = 40, 50, 6


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleDict({"user": nn.Embedding(USERS, RANK), "item": nn.Embedding(ITEMS, RANK)})
        self.offset = nn.ModuleDict({"user": nn.Embedding(USERS, 1), "item": nn.Embedding(ITEMS, 1)})

    def forward(self, pairs):
        ids = {"user": pairs[:, 0], "item": pairs[:, 1]}
        product = torch.prod(torch.stack([self.tables[k](v) for k, v in ids.items()]), dim=0).sum(1)
        return product + sum(self.offset[k](v).squeeze(1) for k, v in ids.items())


def make_average(model, decay):
    return AveragedModel(model, avg_fn=lambda mean, new, count: mean * (1 - decay) + new * decay)


left, right = torch.randn(USERS, RANK), torch.randn(ITEMS, RANK)
pairs = torch.stack([torch.randint(USERS, (1500,)), torch.randint(ITEMS, (1500,))], dim=1)
stars = (left[pairs[:, 0]] * right[pairs[:, 1]]).sum(1) * 0.5 + 0.8 * torch.randn(1500)
train, test = slice(0, 1200), slice(1200, None)

model = Factors()
smooth = make_average(model, 0.99)
opt = torch.optim.RAdam(model.parameters(), lr=0.05)
for epoch in range(8):
    for rows in torch.randperm(1200).split(50):
        loss = F.mse_loss(model(pairs[rows]), stars[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth.update_parameters(model)
    with torch.no_grad():
        scores = [F.mse_loss(m(pairs[test]), stars[test]).item() for m in (model, smooth)]
    print(f"epoch {epoch} train {loss.item():.4f} test {scores[0]:.4f} smooth {scores[1]:.4f}")
