"""Stochastic weight averaging for leaf types; batch-norm statistics are measured anew at the end."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn

torch.manual_seed(0)
torch.set_num_threads(1)


def leaves(n):
    label = torch.randint(0, 3, (n,))
    theta = torch.linspace(0, 6.2832, 33)[:-1]
    lobes = torch.tensor([3.0, 5.0, 7.0])[label][:, None]
    outline = 30 + 6 * torch.cos(lobes * theta + 6.2832 * torch.rand(n, 1)) + 2.5 * torch.randn(n, 32)
    return outline[:, None], label


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 12, 7, padding=3, padding_mode="circular"), nn.BatchNorm1d(12), nn.ReLU(),
            nn.Conv1d(12, 24, 5, padding=2, padding_mode="circular"), nn.BatchNorm1d(24), nn.ReLU(),
        )
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.body(x).amax(2))


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


model = LeafNet()
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
constant = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2)
x, y = leaves(600)
test_x, test_y = leaves(500)
SWA_START, EPOCHS = 7, 14

for epoch in range(EPOCHS):
    model.train()
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= SWA_START:
        # only parameters are averaged here; the running statistics come from update_bn below
        averaged.update_parameters(model)
        constant.step()
    else:
        cosine.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch:2d} loss {loss.item():.3f} lr {optimizer.param_groups[0]['lr']:.4f}")

update_bn((x[i] for i in torch.arange(len(x)).split(50)), averaged)
print(f"last weights {accuracy(model, test_x, test_y):.3f}, averaged weights {accuracy(averaged, test_x, test_y):.3f}")
