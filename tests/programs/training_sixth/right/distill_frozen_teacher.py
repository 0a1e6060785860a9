"""Feature distillation; the teacher stays in eval mode inside a module that is trained."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_net(width, classes=4):
    return nn.ModuleDict({
        "features": nn.Sequential(
            nn.Conv1d(1, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(2), nn.Flatten(),
        ),
        "head": nn.Linear(2 * width, classes),
    })


class DistillationModule(nn.Module):
    def __init__(self, teacher, student, t_dim, s_dim):
        super().__init__()
        self.teacher = teacher
        self.student = student
        self.regressor = nn.Linear(s_dim, t_dim)
        self.teacher.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x, y, hint_weight):
        with torch.no_grad():
            t_feat = self.teacher["features"](x)
            t_logits = self.teacher["head"](t_feat)
        s_feat = self.student["features"](x)
        s_logits = self.student["head"](s_feat)
        hint = F.mse_loss(self.regressor(s_feat), t_feat)
        soft = F.kl_div(F.log_softmax(s_logits / 2, 1), F.softmax(t_logits / 2, 1), reduction="batchmean") * 4
        hard = F.cross_entropy(s_logits, y)
        return hint_weight * hint + 0.5 * soft + 0.5 * hard


def tones(n, length=48):
    y = torch.randint(0, 4, (n,))
    t = torch.linspace(0, 1, length)
    wave = torch.sin(2 * torch.pi * (2 + 2 * y[:, None].float()) * t + 6.28 * torch.rand(n, 1))
    return (wave + 0.7 * torch.randn(n, length)).unsqueeze(1), y


def predict(net, x):
    return net["head"](net["features"](x))


torch.manual_seed(7)
x, y = tones(1000)
x_test, y_test = tones(400)
teacher = conv_net(24)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
teacher.train()
for _ in range(6):
    for idx in torch.randperm(1000).split(100):
        loss = F.cross_entropy(predict(teacher, x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()

module = DistillationModule(teacher, conv_net(8), 48, 16)
trainable = [p for p in module.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(trainable, lr=3e-3)
for epoch in range(30):
    module.train()
    hint_weight = 1.0 if epoch < 15 else 0.0
    for idx in torch.randperm(600).split(50):
        loss = module(x[idx], y[idx], hint_weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 9:
        module.eval()
        with torch.no_grad():
            acc = [(predict(m, x_test).argmax(1) == y_test).float().mean().item() for m in (module.teacher, module.student)]
        print(f"epoch {epoch} loss {loss.item():.3f} teacher {acc[0]:.3f} student {acc[1]:.3f}")
