import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("        phi = self.net(context, article)\n", "        with torch.no_grad():\n            phi = self.net(context, article)\n")


def nodes(tensor):
    seen, todo = set(), [tensor.grad_fn] if tensor.grad_fn is not None else []
    while todo:
        fn = todo.pop()
        if fn not in seen:
            seen.add(fn)
            todo.extend(f for f, _ in fn.next_functions if f is not None)
    return len(seen)


def grown(*edits):
    sizes = []
    result = run("article_ranking", *edits, as_main=False)
    for rounds in (20, 40, 80):
        agent, regret = result["main"](rounds=rounds)
        sizes.append((nodes(agent.precision), nodes(agent.moment)))
    return sizes, regret


wrong, regret = grown()
right, regret_right = grown(FIX)
print(wrong, right)
assert wrong[1][0] > 1.8 * wrong[0][0] and wrong[2][0] > 1.8 * wrong[1][0] and wrong[2][0] > 80 * 8
assert all(size == (0, 0) for size in right)
assert regret == regret_right                      # the graph is of no use: the run is the same without it
