"""Binary hash codes for fast look-up: sign in the forward pass, a clipped straight-through gradient backwards."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_num_threads(1)


class BinarySign(torch.autograd.Function):
    """The true derivative is zero almost everywhere; backward passes the gradient where |x| <= limit (hard tanh)."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= ctx.limit), None


class HashNet(nn.Module):
    def __init__(self, dim, bits, classes):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, bits))
        self.classify = nn.Linear(bits, classes)

    def codes(self, x):
        return BinarySign.apply(self.encode(x), 1.5)

    def forward(self, x):
        return self.classify(self.codes(x))


def blobs(n, centres):
    label = torch.randint(0, len(centres), (n,))
    return centres[label] + torch.randn(n, centres.shape[1]), label


centres = 1.2 * torch.randn(10, 12)
train_x, train_y = blobs(800, centres)
test_x, test_y = blobs(400, centres)
net = HashNet(12, 16, 10)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def map_at_10(query, query_y, base, base_y):
    with torch.no_grad():
        distance = (16 - net.codes(query) @ net.codes(base).T) / 2
    nearest = distance.topk(10, largest=False).indices
    return (base_y[nearest] == query_y[:, None]).float().mean().item()


before = map_at_10(test_x, test_y, train_x, train_y)
for epoch in range(30):
    for idx in torch.randperm(len(train_x)).split(80):
        loss = F.cross_entropy(net(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 0:
        grad_norm = net.encode[0].weight.grad.norm().item()
        print(f"epoch {epoch:2d} loss {loss.item():.3f} encoder gradient {grad_norm:.3f}")
after = map_at_10(test_x, test_y, train_x, train_y)
print(f"precision@10 with 16-bit codes {before:.3f} -> {after:.3f}")
