"""Movement pruning (Sanh et al. 2020) in small: each weight has a learned score, the top ones by score are kept."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
FEATURES, CLASSES, HIDDEN, STEPS, BATCH = 60, 5, 64, 600, 128
FINAL_KEEP = 0.06


def make_data(n, teacher):
    x = torch.randn(n, FEATURES)
    # only the first ten measurements carry information about the class
    y = (torch.tanh(x[:, :10] @ teacher[0]) @ teacher[1]).argmax(dim=1)
    return x, y


def top_fraction(scores, keep):
    """0/1 mask of the `keep` highest scores."""
    k = max(1, int(keep * scores.numel()))
    threshold = scores.flatten().topk(k).values[-1]
    return (scores >= threshold).to(scores.dtype)


class ScoredLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.scores = nn.Parameter(torch.empty(n_out, n_in))
        nn.init.kaiming_uniform_(self.weight, a=5 ** 0.5)
        nn.init.normal_(self.scores, std=1e-3)
        self.keep = 1.0

    def forward(self, x):
        if self.keep >= 1.0:
            return F.linear(x, self.weight, self.bias)
        mask = top_fraction(self.scores, self.keep)
        return F.linear(x, self.weight * mask, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = ScoredLinear(FEATURES, HIDDEN)
        self.second = ScoredLinear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.second(F.relu(self.first(x)))))

    def set_keep(self, keep):
        self.first.keep = self.second.keep = keep


def keep_at(step):
    """Cubic schedule from dense to FINAL_KEEP, with a warm-up and a cool-down."""
    t = min(max((step - 50) / (0.6 * STEPS), 0.0), 1.0)
    return FINAL_KEEP + (1 - FINAL_KEEP) * (1 - t) ** 3


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        acc = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return acc


def main():
    teacher = (torch.randn(10, 12), torch.randn(12, CLASSES))
    train_x, train_y = make_data(4000, teacher)
    test_x, test_y = make_data(2000, teacher)
    net = Net()
    scores = [p for n, p in net.named_parameters() if n.endswith("scores")]
    weights = [p for n, p in net.named_parameters() if not n.endswith("scores")]
    opt = torch.optim.Adam([{"params": weights, "lr": 2e-3}, {"params": scores, "lr": 1e-2}])
    for step in range(STEPS):
        keep = keep_at(step)
        net.set_keep(keep)
        idx = torch.randint(len(train_x), (BATCH,))
        loss = F.cross_entropy(net(train_x[idx]), train_y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 150 == 0:
            print(f"step {step:4d}  keep {keep:.2f}  loss {loss.item():.3f}")
    acc = accuracy(net, test_x, test_y)
    with torch.no_grad():
        mask = top_fraction(net.first.scores, FINAL_KEEP)
    informative = (mask[:, :10].sum() / mask.sum()).item()
    print(f"test accuracy at {FINAL_KEEP:.0%} of the weights: {acc:.3f}")
    print(f"kept first-layer weights on informative inputs: {informative:.2f}")
    return net, acc, informative


if __name__ == "__main__":
    net, acc, informative = main()
