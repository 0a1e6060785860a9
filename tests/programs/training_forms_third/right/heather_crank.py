import torch
import torch.nn.functional as F
from torch.optim import Optimizer

torch.manual_seed(101)


class SignMomentum(Optimizer):
    def __init__(self, params, lr, inner=0.9, outer=0.98):
        super().__init__(params, dict(lr=lr, inner=inner, outer=outer))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p, dtype=torch.float32)
                g = p.grad.float()
                push = torch.lerp(g, state["average"], group["inner"]).sign()
                p.sub_(push.to(p.dtype), alpha=group["lr"])
                state["average"].lerp_(g, 1 - group["outer"])


def table(rows, dim):
    return torch.randn(rows, dim).requires_grad_()


def link_logits(tables, ends):
    source, sink = ends
    left, right = F.embedding(source, tables["out"]), F.embedding(sink, tables["in"])
    return torch.einsum("bd,bd->b", left.float(), right.float())


def graph(nodes, edges, camps=4):
    camp = torch.randint(0, camps, (nodes,))
    ends = torch.randint(0, nodes, (2, edges))
    same = camp[ends[0]] == camp[ends[1]]
    return ends, torch.bernoulli(torch.where(same, 0.9, 0.1))


nodes = 60
ends, present = graph(nodes, 3000)
tables = {side: table(nodes, 8) for side in ("out", "in")}
optimizer = SignMomentum(tables.values(), lr=1e-3)
start = {side: t.detach().clone() for side, t in tables.items()}
for step in range(300):
    pick = torch.randint(0, ends.shape[1], (512,))
    loss = F.binary_cross_entropy_with_logits(link_logits(tables, ends[:, pick]), present[pick])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 74:
        print(f"step {step + 1}  loss {loss.item():.4f}")

with torch.no_grad():
    hit = (link_logits(tables, ends) > 0) == present.bool()
    moved = torch.stack([(t - start[s]).float().abs().mean() for s, t in tables.items()])
print(f"links right {hit.float().mean().item():.4f}  mean travel {moved.mean().item():.4f}")
