"""LoRA (Hu et al., 2021): adapt a pretrained regressor to a shifted domain with low-rank updates."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

D_IN, D_HID, D_OUT = 24, 64, 4
RANK, ALPHA = 4, 8


class LoRALinear(nn.Linear):
    """Linear layer with a low-rank update. In eval mode the update is folded into the weight."""

    def __init__(self, base, rank=RANK, alpha=ALPHA):
        super().__init__(base.in_features, base.out_features)
        self.load_state_dict(base.state_dict())
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.merged = False
        self.weight.requires_grad_(False)
        self.bias.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if not mode and not self.merged:
            self.weight.data += self.scaling * (self.lora_B @ self.lora_A).data
            self.merged = True
        elif mode:
            self.merged = False
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if not self.merged:
            out = out + self.scaling * (x @ self.lora_A.t() @ self.lora_B.t())
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(D_IN, D_HID)
        self.fc2 = nn.Linear(D_HID, D_HID)
        self.head = nn.Linear(D_HID, D_OUT)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.head(x)


W1 = torch.randn(D_IN, 16) / D_IN ** 0.5
W2 = torch.randn(16, D_OUT) / 4
SHIFT = torch.eye(D_IN) + 0.9 * torch.randn(D_IN, 2) @ torch.randn(2, D_IN) / D_IN ** 0.5


def sample(n, shifted):
    x = torch.randn(n, D_IN)
    h = x @ SHIFT if shifted else x
    return x, torch.sin(1.5 * h @ W1) @ W2


def fit(model, params, data, valid, epochs, lr, tag):
    opt = torch.optim.Adam(params, lr=lr)
    history = []
    x, y = data
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(64):
            loss = F.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            history.append(F.mse_loss(model(valid[0]), valid[1]).item())
        if (epoch + 1) % (epochs // 4) == 0:
            print(f"{tag} epoch {epoch + 1:3d}  train {loss.item():.4f}  valid {history[-1]:.4f}")
    return history


net = Net()
fit(net, net.parameters(), sample(4096, False), sample(512, False), 20, 2e-3, "pretrain")

target_train, target_valid = sample(1024, True), sample(512, True)
net.fc1 = LoRALinear(net.fc1)
net.fc2 = LoRALinear(net.fc2)
net.head.requires_grad_(False)
pretrained = {name: getattr(net, name).weight.detach().clone() for name in ("fc1", "fc2")}
trainable = [p for p in net.parameters() if p.requires_grad]
print("trainable parameters", sum(p.numel() for p in trainable))
history = fit(net, trainable, target_train, target_valid, 24, 3e-3, "adapt")
print(f"adapted valid mse {history[-1]:.4f}  best {min(history):.4f}")
