import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("solubility_mpnn")
good = run("solubility_mpnn", ("inbox[dst] += msg", "inbox = inbox.index_add(0, dst, msg)"))
types, edges, owner, y = bad["collate"](bad["test"])
layer = bad["model"].layers[0]
h = bad["model"].embed(types).detach()
msg = layer.message(torch.cat([h[edges[0]], h[edges[1]]], -1))
msg.retain_grad()
box = torch.zeros_like(h)
box[edges[1]] += msg
box.sum().backward()
# the forward sum holds one message per atom only
full = torch.zeros_like(h).index_add(0, edges[1], msg)
kept = len(edges[1].unique()) / edges.shape[1]
print("share of bonds whose message arrives:", kept, "inbox differs:", (box - full).norm().item() / full.norm().item())
print("unexplained", bad["unexplained"], "repaired", good["unexplained"])
assert kept < 0.6 and (box - full).norm() > 0.2 * full.norm()
assert good["unexplained"] < 0.5 * bad["unexplained"]
