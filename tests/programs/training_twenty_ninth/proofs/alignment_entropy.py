import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import gc
import torch


class Held:
    """One tensor that a graph keeps for its backward; counts the bytes that are alive."""
    alive = 0

    def __init__(self, tensor):
        self.tensor, self.size = tensor.detach(), tensor.numel() * tensor.element_size()
        Held.alive += self.size

    def __del__(self):
        Held.alive -= self.size


def held_after(*edits):
    gc.collect()
    before = Held.alive
    with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor):
        result = run("alignment_entropy", *edits)
    gc.collect()
    return Held.alive - before, result


FIX = ("(weights * log_weights).sum(-1).mean())", "(weights * log_weights).sum(-1).mean().detach())")
SHORT = ("STEPS, REPORT = 90, 30", "STEPS, REPORT = 20, 10")
LONG = ("STEPS, REPORT = 90, 30", "STEPS, REPORT = 40, 10")
short, a = held_after(SHORT)
long, b = held_after(LONG)
fixed, c = held_after(LONG, FIX)
print(short, long, fixed)
assert all(e.grad_fn is not None for e in b["model"].attention.entropies)
assert short > 150_000 and 1.9 < long / short < 2.1  # kept memory is proportional to the number of steps
assert fixed == 0
assert torch.equal(flat(b["model"]), flat(c["model"]))  # and the graphs are of no use: training is the same
