import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)


def init_state(params):
    m = [torch.zeros_like(p) for p in params]
    v = [torch.zeros_like(p) for p in params]
    return m, v


@torch.no_grad()
def adam_step(params, m, v, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    for i, p in enumerate(params):
        if p.grad is None:
            continue
        g = p.grad
        m[i] = beta1 * m[i] + (1 - beta1) * g
        v[i] = beta2 * v[i] + (1 - beta2) * g ** 2
        m_hat = m[i] / (1 - beta1 ** t)
        v_hat = v[i] / (1 - beta2 ** t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)


def make_spirals(n):
    label = torch.randint(0, 3, (n,))
    radius = torch.rand(n)
    theta = 4 * radius + label * 2.094 + 0.15 * torch.randn(n)
    return torch.stack([radius * theta.cos(), radius * theta.sin()], dim=1), label


class SpiralNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 48)
        self.fc2 = nn.Linear(48, 48)
        self.fc3 = nn.Linear(48, 3)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


x_train, y_train = make_spirals(1500)
x_test, y_test = make_spirals(400)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=75, shuffle=True)
net = SpiralNet()
params = list(net.parameters())
m, v = init_state(params)

for epoch in range(15):
    epoch_loss = 0.0
    for step, (x, y) in enumerate(train_loader):
        net.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam_step(params, m, v, step + 1, lr=2e-3)
        epoch_loss += loss.item()
    if epoch % 3 == 2:
        with torch.no_grad():
            acc = (net(x_test).argmax(dim=1) == y_test).float().mean()
        print(f"epoch {epoch + 1}: loss {epoch_loss / len(train_loader):.4f} test acc {acc:.3f}")
