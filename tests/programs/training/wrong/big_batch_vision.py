"""Small image classifier, effective batch of 128 out of micro-batches of 32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(61)
MICRO, ACCUMULATE = 32, 4


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 9, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def images(n):
    y = torch.randint(4, (n,))
    x = 0.5 * torch.randn(n, 1, 12, 12)
    for i, label in enumerate(y.tolist()):
        row, col = divmod(label, 2)
        x[i, 0, row * 6 + 1 : row * 6 + 5, col * 6 + 1 : col * 6 + 5] += 0.6
    return x, y


x, y = images(512)
x_test, y_test = images(200)
model = ConvNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

for epoch in range(5):
    model.train()
    order = torch.randperm(len(x)).split(MICRO)
    epoch_loss = 0.0
    for i, idx in enumerate(order):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[idx]), y[idx]) / ACCUMULATE
        loss.backward()
        epoch_loss += loss.item() * ACCUMULATE
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {epoch_loss / len(order):.4f} test acc {acc:.3f}")
