"""FixMatch in small: few labelled leaf textures, many unlabelled ones, confident pseudo-labels."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
N_CLASSES = 6
SIZE = 12
TAU = 0.95
LAMBDA_U = 1.5
STEPS = 220

angles = torch.linspace(0, torch.pi, N_CLASSES + 1)[:-1]
grid = torch.stack(torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")).float()


def make_leaves(n, junk=0.0):
    """Oriented stripes with random phase; a share of the images are plain clutter."""
    y = torch.randint(0, N_CLASSES, (n,))
    a = angles[y] + 0.16 * torch.randn(n)
    freq = 0.9 + 0.3 * torch.rand(n)
    phase = 6.28 * torch.rand(n)
    proj = grid[0] * a.cos().view(-1, 1, 1) + grid[1] * a.sin().view(-1, 1, 1)
    x = torch.sin(proj * freq.view(-1, 1, 1) + phase.view(-1, 1, 1)).unsqueeze(1)
    x = x + 1.1 * torch.randn_like(x)
    clutter = torch.rand(n) < junk
    x[clutter] = 1.2 * torch.randn(int(clutter.sum()), 1, SIZE, SIZE)
    return x, y


def weak(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, shift, dims=(2, 3))


def strong(x):
    x = weak(x) * (0.5 + torch.rand(len(x), 1, 1, 1))
    x = x + 0.5 * torch.randn_like(x)
    keep = torch.ones_like(x)
    r, c = torch.randint(0, SIZE - 4, (2,)).tolist()
    keep[:, :, r:r + 5, c:c + 5] = 0
    return x * keep


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.head = nn.Linear(128, N_CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


def unlabelled_loss(net, xu):
    with torch.no_grad():
        probs = net(weak(xu)).softmax(dim=1)
        conf, pseudo = probs.max(dim=1)
        mask = (conf >= TAU).float()
    logits = net(strong(xu))
    loss = (F.cross_entropy(logits, pseudo) * mask).mean()
    return loss, mask.mean()


x_lab, y_lab = make_leaves(24)
x_unl, _ = make_leaves(2000, junk=0.5)
x_test, y_test = make_leaves(1200)

net = LeafNet()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS)


def test_accuracy():
    net.eval()
    with torch.no_grad():
        acc = (net(x_test).argmax(1) == y_test).float().mean().item()
    net.train()
    return acc


for step in range(STEPS):
    i = torch.randint(0, len(x_lab), (24,))
    j = torch.randint(0, len(x_unl), (96,))
    loss_x = F.cross_entropy(net(weak(x_lab[i])), y_lab[i])
    loss_u, used = unlabelled_loss(net, x_unl[j])
    loss = loss_x + LAMBDA_U * loss_u
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 50 == 49:
        print(f"step {step + 1:3d}  sup {loss_x.item():.3f}  unsup {loss_u.item():.3f}  "
              f"used {used.item():.2f}  test acc {test_accuracy():.3f}")

final_acc = test_accuracy()
print(f"final accuracy {final_acc:.3f}")
