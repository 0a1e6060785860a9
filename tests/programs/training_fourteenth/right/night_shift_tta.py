"""A classifier for daylight images is adapted to unlabelled night images while it is being used.

Only the scales and shifts of the normalisation layers are tuned, by the entropy of the predictions on the batch that has
just arrived; the statistics are those of the batch.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
CLASSES, RES = 6, 12
N_TRAIN, N_STREAM, BATCH = 1500, 2400, 100


def make_images(n, gen, night=False):
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    proto = torch.randn(CLASSES, 3, RES, RES, generator=torch.Generator().manual_seed(99))
    proto = F.avg_pool2d(proto, 3, 1, 1) * 0.45
    x = proto[y] + 0.45 * torch.randn(n, 3, RES, RES, generator=gen)
    if night:
        gain = torch.tensor([0.35, 0.5, 0.8]).view(1, 3, 1, 1)
        x = x * gain - torch.tensor([0.9, 0.5, -0.4]).view(1, 3, 1, 1)
        x = x + 0.25 * torch.randn(x.shape, generator=gen)
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 9, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(),
        )
        self.head = nn.Linear(48, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))


def fit_source(net, x, y, epochs=4):
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    net.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(BATCH):
            opt.zero_grad()
            F.cross_entropy(net(x[idx]), y[idx]).backward()
            opt.step()


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def prepare_for_stream(net):
    net = copy.deepcopy(net).train().requires_grad_(False)
    tuned = []
    for m in net.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.requires_grad_(True)
            m.track_running_stats = False
            m.running_mean = m.running_var = None
            tuned += [m.weight, m.bias]
    return net, tuned


def serve(net, tuned, x, y, lr=5e-3):
    """Predict each batch once, in the order of arrival, then take one step on its confident part."""
    opt = torch.optim.Adam(tuned, lr=lr)
    right = []
    for xb, yb in zip(x.split(BATCH), y.split(BATCH)):
        logits = net(xb)
        right.append((logits.argmax(1) == yb).float())
        log_p = logits.log_softmax(1)
        entropy = -(log_p.exp() * log_p).sum(1)
        keep = entropy.detach() < 0.6 * torch.log(torch.tensor(float(CLASSES)))
        if keep.any():
            weight = torch.exp(-entropy[keep].detach())
            opt.zero_grad()
            (weight * entropy[keep]).mean().backward()
            opt.step()
    right = torch.cat(right)
    return right[: len(right) // 3].mean().item(), right[-len(right) // 3:].mean().item()


torch.manual_seed(SEED)
gen = torch.Generator().manual_seed(SEED)
x, y = make_images(N_TRAIN, gen)
day, night = make_images(600, gen), make_images(N_STREAM, gen, night=True)
net = Net()
fit_source(net, x, y)
print(f"daylight {accuracy(net, *day):.3f}  night without adaptation {accuracy(net, *night):.3f}")
served, tuned = prepare_for_stream(net)
first, last = serve(served, tuned, *night)
print(f"night stream: first third {first:.3f}  last third {last:.3f}")
print(f"daylight with the model as trained {accuracy(net, *day):.3f}")
