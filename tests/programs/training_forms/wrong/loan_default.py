import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad_and_value

torch.manual_seed(17)


def applicants(n):
    x = torch.randn(n, 8)
    risk = 2 * x[:, 0] - x[:, 3] + x[:, 1] * x[:, 2]
    return x, (risk + 0.3 * torch.randn(n) > 0).float()


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 20)
        self.b = nn.Linear(20, 1)

    def forward(self, x):
        return self.b(F.silu(self.a(x))).squeeze(-1)


def fit(model, x, y, rounds=150, rate=0.5):
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}

    def objective(w, xb, yb):
        return F.binary_cross_entropy_with_logits(functional_call(model, w, (xb,)), yb)

    step_of = grad_and_value(objective)
    tensors = list(weights.values())
    opt = torch.optim.SGD(tensors, lr=rate, momentum=0.5)
    for r in range(rounds):
        rows = torch.randint(len(x), (64,))
        grads, loss = step_of(weights, x[rows], y[rows])
        for name, g in grads.items():
            weights[name].grad = g
        opt.step()
        if r % 50 == 49:
            print(f"round {r + 1}: loss {loss.item():.4f}")
    return weights


@torch.no_grad()
def report(model, x, y):
    logits = model(x)
    hit = ((logits > 0).float() == y).float().mean()
    return F.binary_cross_entropy_with_logits(logits, y).item(), hit.item()


x, y = applicants(700)
model = Scorer()
final = fit(model, x[:500], y[:500])
size = sum(v.numel() for v in final.values())
loss, hit = report(model, x[500:], y[500:])
print(f"{size} weights, test loss {loss:.4f}, test accuracy {hit:.3f}")
