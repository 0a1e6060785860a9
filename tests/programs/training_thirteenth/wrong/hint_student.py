"""Teacher -> student training with logit distillation and an intermediate hint, on synthetic texture patches."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
SIDE, CLASSES, T = 12, 8, 4.0
WEIGHT = {"cls": 1.0, "div": 0.5, "hint": 20.0}


def textures(n, gen):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    angle = y.float() * torch.pi / CLASSES + 0.08 * torch.randn(n, generator=gen)
    phase = 6.28 * torch.rand(n, generator=gen)
    freq = 0.9 + 0.4 * torch.rand(n, generator=gen)
    gy, gx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    wave = torch.cos(angle)[:, None, None] * gx + torch.sin(angle)[:, None, None] * gy
    img = torch.sin(freq[:, None, None] * wave + phase[:, None, None])
    return (img + 0.9 * torch.randn(img.shape, generator=gen))[:, None], y


class ConvNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        blocks, cin = [], 1
        for w in widths:
            blocks.append(nn.Sequential(nn.Conv2d(cin, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU()))
            cin = w
        self.blocks = nn.ModuleList(blocks)
        self.fc = nn.Linear(cin * (SIDE // 4) ** 2, CLASSES)

    def forward(self, x, is_feat=False):
        feats = []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i < 2:
                x = F.max_pool2d(x, 2)
            feats.append(x)
        logits = self.fc(x.flatten(1))
        return (feats, logits) if is_feat else logits


class ConvReg(nn.Module):
    """Projects a student feature map onto the channels of the teacher's."""

    def __init__(self, s_channels, t_channels):
        super().__init__()
        self.conv = nn.Conv2d(s_channels, t_channels, 1)

    def forward(self, f):
        return F.relu(self.conv(f))


class DistillKL(nn.Module):
    def forward(self, y_s, y_t):
        p_s = F.log_softmax(y_s / T, dim=1)
        p_t = F.softmax(y_t / T, dim=1)
        return F.kl_div(p_s, p_t, reduction="batchmean") * T * T


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


gen = torch.Generator().manual_seed(5)
big_x, big_y = textures(1024, gen)
train_x, train_y = textures(384, gen)
test_x, test_y = textures(512, gen)

teacher = ConvNet([16, 32, 32])
opt_t = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(6):
    teacher.train()
    for idx in torch.randperm(len(big_x)).split(64):
        opt_t.zero_grad()
        F.cross_entropy(teacher(big_x[idx]), big_y[idx]).backward()
        opt_t.step()
print(f"teacher accuracy {accuracy(teacher, test_x, test_y):.3f}")

student = ConvNet([4, 6, 8])
regressor = ConvReg(6, 32)
module_list = nn.ModuleList([student, regressor, teacher])
trainable_list = nn.ModuleList([student])
criterion_list = nn.ModuleList([nn.CrossEntropyLoss(), DistillKL(), nn.MSELoss()])
optimizer = torch.optim.SGD(trainable_list.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)

criterion_cls, criterion_div, criterion_hint = criterion_list
for epoch in range(12):
    module_list.train()
    teacher.eval()
    hint_sum = 0.0
    batches = torch.randperm(len(train_x)).split(64)
    for idx in batches:
        feat_s, logit_s = student(train_x[idx], is_feat=True)
        with torch.no_grad():
            feat_t, logit_t = teacher(train_x[idx], is_feat=True)
        hint = criterion_hint(regressor(feat_s[1]), feat_t[1])
        loss = (WEIGHT["cls"] * criterion_cls(logit_s, train_y[idx])
                + WEIGHT["div"] * criterion_div(logit_s, logit_t) + WEIGHT["hint"] * hint)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hint_sum += hint.item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}  hint {hint_sum / len(batches):.4f}")
print(f"student accuracy {accuracy(student, test_x, test_y):.3f}")
