"""Adapt a trained message classifier to a new writing style with low-rank adapters, then merge them."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(17)

FEATURES, WIDTH, CLASSES = 24, 48, 5
BATCH, BASE_STEPS, ADAPT_STEPS = 64, 100, 120

TOPICS = torch.randn(CLASSES, FEATURES)
ROTATION = torch.linalg.qr(torch.eye(FEATURES) + 0.25 * torch.randn(FEATURES, FEATURES))
STYLE = ROTATION.Q * ROTATION.R.diagonal().sign()


def make_messages(count, style=None):
    labels = torch.randint(0, CLASSES, (count,))
    messages = TOPICS[labels] + 0.9 * torch.randn(count, FEATURES)
    return (messages if style is None else messages @ style), labels


def make_classifier():
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, CLASSES)
    )


class LowRankLinear(nn.Module):
    """A linear layer plus scale * up @ down; `up` starts at zero, so the layer starts as it was."""

    def __init__(self, base, rank=4, alpha=8.0, dropout=0.05):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.dropout = nn.Dropout(dropout)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(self.dropout(x), self.down), self.up)

    @torch.no_grad()
    def merged(self):
        self.base.weight.add_(self.up @ self.down, alpha=self.scale)
        return self.base


def add_adapters(net):
    for name, child in list(net.named_children()):
        if isinstance(child, nn.Linear):
            setattr(net, name, LowRankLinear(child))
    return net


def merge_adapters(net):
    for name, child in list(net.named_children()):
        if isinstance(child, LowRankLinear):
            setattr(net, name, child.merged())
    return net


def fit(net, parameters, messages, labels, steps, lr):
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.01)
    net.train()
    for _ in range(steps):
        rows = torch.randint(0, len(messages), (BATCH,))
        loss = F.cross_entropy(net(messages[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(net, messages, labels):
    net.eval()
    return (net(messages).argmax(dim=1) == labels).float().mean().item()


plain_x, plain_y = make_messages(2048)
plain_test = make_messages(1024)
styled_x, styled_y = make_messages(512, STYLE)
styled_test = make_messages(1024, STYLE)

base = make_classifier()
fit(base, base.parameters(), plain_x, plain_y, BASE_STEPS, lr=3e-3)
print(f"base:    plain {accuracy(base, *plain_test):.3f}  styled {accuracy(base, *styled_test):.3f}")

adapted = add_adapters(copy.deepcopy(base))
adapter_parameters = [p for p in adapted.parameters() if p.requires_grad]
print(f"training {sum(p.numel() for p in adapter_parameters)} of {sum(p.numel() for p in adapted.parameters())} values")
fit(adapted, adapter_parameters, styled_x, styled_y, ADAPT_STEPS, lr=5e-3)
print(f"adapted: styled {accuracy(adapted, *styled_test):.3f}")

with torch.no_grad():
    adapted.eval()
    before = adapted(styled_test[0])
    merged = merge_adapters(adapted)
    difference = (merged(styled_test[0]) - before).abs().max().item()
print(f"merged:  styled {accuracy(merged, *styled_test):.3f}  largest change of a logit {difference:.1e}")
