import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch


def spread(result):
    """After one more round without aggregation: do the clients hold different models, and did the server stay put?"""
    s = result["server"]
    for c in s.clients:
        c.receive(s.model)
    before = [p.detach().clone() for p in s.model.parameters()]
    for c in s.clients:
        c.fit()
    moved = sum((a - b).abs().sum().item() for a, b in zip(before, s.model.parameters()))
    a, b = s.clients[0].model, s.clients[1].model
    diff = sum((p - q).abs().sum().item() for p, q in zip(a.parameters(), b.parameters()))
    return moved, diff


bad = run("orchard_clients")
good = run("orchard_clients", ("p.data = w.data", "p.data = w.data.clone()"))
print(bad["history"], good["history"])
mb, db = spread(bad)
mg, dg = spread(good)
print(mb, db, mg, dg)
assert mb > 0.1 and db == 0.0      # local steps move the server, all clients are one and the same model
assert mg == 0.0 and dg > 0.1
assert good["history"][-1] > bad["history"][-1] + 0.02
