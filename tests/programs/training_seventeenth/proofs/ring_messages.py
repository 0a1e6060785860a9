import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

wrong = run("ring_messages", capture=("forward",))
fixed = run("ring_messages", ("inbox[dst] += m", "inbox = inbox.index_add(0, dst, m)"))
print("test MAE", wrong["test_mae"], fixed["test_mae"])
# the messages that reach a node: only one per node
layer, h, edges = wrong["net"].layers[0], wrong["net"].embed(wrong["types"]), wrong["edges"]
src, dst = edges
m = layer.message(torch.cat([h[src], h[dst]], -1)).detach()
inbox = torch.zeros_like(h).detach()
inbox[dst] += m
full = torch.zeros_like(h).index_add(0, dst, m)
print("sum of messages", m.norm().item(), "kept share", (inbox.sum() / full.sum()).item())
degree = torch.bincount(dst)
print("mean degree", degree.float().mean().item())
print("largest difference", (inbox - full).abs().max().item())
assert (inbox - full).abs().max() > 0.1
assert fixed["test_mae"] < 0.6 * wrong["test_mae"]
