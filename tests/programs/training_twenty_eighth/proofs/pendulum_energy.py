import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import gc
import torch

FIX = ("drift = (energy - start).abs().mean()", "drift = (energy - start).abs().mean().detach()")


def short(steps):
    return ("def main(steps=150", f"def main(steps={steps}")


def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def nodes(tensor):
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack += [n for n, _ in node.next_functions]
    return len(seen)


def grown(*edits):
    gc.collect()
    before = rss()
    result = run("pendulum_energy", *edits)
    gc.collect()
    return result, rss() - before


grown(short(10), FIX)  # warm-up
good, mb_good = grown(short(100), FIX)
few, mb_few = grown(short(50))
n_few = nodes(few["drift_monitor"].value)
w_few = flat(few["pendulum"])
del few
many, mb_many = grown(short(100))
n_many = nodes(many["drift_monitor"].value)
print("nodes held after 50 and 100 steps", n_few, n_many)
print("MiB kept: repaired", mb_good, "50 steps", mb_few, "100 steps", mb_many)
assert 1.8 < n_many / n_few < 2.2
assert good["drift_monitor"].value.grad_fn is None
assert torch.equal(flat(good["pendulum"]), flat(many["pendulum"]))  # the training itself is the same
assert mb_many > mb_good + 25
