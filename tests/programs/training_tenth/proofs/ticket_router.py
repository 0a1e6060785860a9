import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

probe = ("            optimizer.step()\n",
         "            LOG.append(model.embed.weight.grad[:PUBLIC].abs().max().item())\n            optimizer.step()\n")
fix = ("optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)",
       "optimizer = torch.optim.AdamW([{'params': [model.embed.weight], 'weight_decay': 0.0}, "
       "{'params': [p for p in model.parameters() if p is not model.embed.weight]}], lr=4e-3, weight_decay=0.1)")
grads = []
bad = run("ticket_router", probe, inject={"LOG": grads})
good = run("ticket_router", fix)
n = bad["PUBLIC"]
drift = [(r["model"].embed.weight[:n].detach() - r["vectors"]).norm().item() / r["vectors"].norm().item() for r in (bad, good)]
print(f"largest gradient of the fixed rows {max(grads)}, relative change of the fixed rows {drift[0]:.3f}, repaired {drift[1]}")
assert max(grads) == 0 and drift[0] > 0.1 and drift[1] == 0
# the change is exactly the decoupled weight decay, applied at every step
shrunk = bad["vectors"] * (1 - 4e-3 * 0.1) ** len(grads)
assert (bad["model"].embed.weight[:n].detach() - shrunk).abs().max() < 1e-4
print(bad.output, good.output)
