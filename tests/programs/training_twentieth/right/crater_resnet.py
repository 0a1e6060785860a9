"""Small residual network that counts craters (0..3) in 16x16 moon pictures, with Monte-Carlo dropout at test time.

Every residual branch starts as zero (Goyal et al., 2017), and weight decay is applied to the matrices only.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 31
SIZE, EPOCHS, BATCH = 16, 10, 32
LR, WARMUP_STEPS, MC_SAMPLES = 4e-3, 15, 20

torch.manual_seed(SEED)
yy, xx = torch.meshgrid(torch.arange(SIZE).float(), torch.arange(SIZE).float(), indexing="ij")
CELLS = torch.tensor([[4.0, 4.0], [4.0, 11.0], [11.0, 4.0], [11.0, 11.0]])


def make_pictures(n):
    y = torch.randint(0, 4, (n,))
    pictures = 0.35 * torch.randn(n, 1, SIZE, SIZE)
    for i, count in enumerate(y.tolist()):
        for cell in torch.randperm(4)[:count].tolist():
            cy, cx = (CELLS[cell] + torch.rand(2) - 0.5).tolist()
            distance = ((yy - cy) ** 2 + (xx - cx) ** 2).sqrt()
            pictures[i, 0] += torch.exp(-((distance - 2.0) ** 2))
    return pictures, y


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        nn.init.zeros_(self.norm2.weight)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(h)))


class CraterNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.blocks = nn.Sequential(Residual(width), Residual(width))
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        return self.out(self.drop(self.blocks(self.stem(x)).mean(dim=(2, 3))))


def decay_groups(model, decay):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


@torch.no_grad()
def mc_predict(model, x):
    """Mean and spread of the class probabilities over dropout masks; batch statistics stay those of training."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    probs = torch.stack([model(x).softmax(dim=1) for _ in range(MC_SAMPLES)])
    model.eval()
    return probs.mean(dim=0), probs.std(dim=0)


train_x, train_y = make_pictures(640)
test_x, test_y = make_pictures(320)
model = CraterNet()
optimizer = torch.optim.AdamW(decay_groups(model, 0.02), lr=LR)
step = 0

for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = LR * min(1.0, step / WARMUP_STEPS)
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 2 == 0:
        model.eval()
        with torch.no_grad():
            test_acc = (model(test_x).argmax(dim=1) == test_y).float().mean().item()
        print(f"epoch {epoch}: loss {total / len(train_x):.3f}  test acc {test_acc:.3f}")

mean, spread = mc_predict(model, test_x)
right = mean.argmax(dim=1) == test_y
picked = spread.gather(1, mean.argmax(dim=1, keepdim=True)).squeeze(1)
print(f"MC dropout: test acc {right.float().mean():.3f}")
print(f"spread where right {picked[right].mean():.3f}, where wrong {picked[~right].mean():.3f}")
