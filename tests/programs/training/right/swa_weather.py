"""Stochastic weight averaging with refreshed batch-norm statistics."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(36)
EPOCHS, SWA_START = 12, 6


def weather(n):
    x = torch.randn(n, 9)
    rain = torch.sigmoid(2 * x[:, 0] * x[:, 1] + x[:, 2])
    return x, (rain > 0.5).long()


train = TensorDataset(*weather(640))
x_test, y_test = weather(320)
loader = DataLoader(train, batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(9, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
swa_model = AveragedModel(model)
swa_scheduler = SWALR(opt, swa_lr=0.05, anneal_epochs=2)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch >= SWA_START:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch}: loss {total / len(loader):.4f} lr {opt.param_groups[0]['lr']:.3f}")

update_bn(loader, swa_model)
for name, m in (("last", model), ("averaged", swa_model)):
    m.eval()
    with torch.no_grad():
        acc = (m(x_test).argmax(1) == y_test).float().mean().item()
    print(f"{name}: test acc {acc:.3f}")
