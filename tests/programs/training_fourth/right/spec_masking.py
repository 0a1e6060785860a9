"""Keyword spotting with masked spectrograms; the masks are written in place into the fresh batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
FRAMES, BANDS, WORDS = 16, 12, 5
templates = torch.randn(WORDS, FRAMES, BANDS)


def spectrograms(n):
    label = torch.randint(0, WORDS, (n,))
    shift = torch.randint(-2, 3, (n,)).tolist()
    rows = [torch.roll(templates[k], s, 0) for k, s in zip(label.tolist(), shift)]
    return torch.stack(rows) + 1.5 * torch.randn(n, FRAMES, BANDS), label


class Keyword(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(BANDS, 24, 5, padding=2)
        self.out = nn.Linear(24, WORDS)

    def forward(self, x):
        return self.out(F.relu(self.conv(x.transpose(1, 2))).amax(2))


def mask_(batch):
    """Overwrites a band of frames and a band of frequencies in the given tensor."""
    t = int(torch.randint(0, FRAMES - 3, (1,)))
    f = int(torch.randint(0, BANDS - 2, (1,)))
    batch[:, t:t + 3].zero_()
    batch[:, :, f:f + 2] = 0.0
    return batch.mul_(0.9 + 0.2 * torch.rand(len(batch), 1, 1))


def train(augment):
    torch.manual_seed(1)
    model = Keyword()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    for epoch in range(22):
        for idx in torch.randperm(len(train_x)).split(30):
            batch = train_x[idx]  # indexing with a tensor of indices makes a copy, so masks never reach the data
            if augment:
                mask_(batch)
            loss = F.cross_entropy(model(batch), train_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return loss.item(), (model(test_x).argmax(1) == test_y).float().mean().item()


train_x, train_y = spectrograms(240)
test_x, test_y = spectrograms(800)
untouched = train_x.clone()
for augment in (False, True):
    loss, acc = train(augment)
    print(f"augmentation {augment}: last loss {loss:.3f}, test accuracy {acc:.3f}")
assert torch.equal(train_x, untouched)
