import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

fix = ("p.grad = q.grad.clone()", "p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad")
bad, good = run("plume_adapter"), run("plume_adapter", fix)


class Fixed:
    """The same support and query points at every call."""

    def __init__(self, task):
        self.pts = {10: task.sample(10), 20: task.sample(20)}

    def sample(self, n):
        return self.pts[n]


def meta_grad(r, tasks):
    r["trainer"].opt.step = lambda: None
    r["trainer"].step(tasks)
    return flat_grad(r["trainer"].net)


def depends_on_first(r):
    t = r["trainer"]
    a, b, c = (Fixed(x) for x in t.tasks(3))
    return rel(meta_grad(r, [a, c]), meta_grad(r, [b, c])), rel(meta_grad(r, [a, b, c]), meta_grad(r, [b, a, c]))


print(depends_on_first(bad), depends_on_first(good), bad["score"], good["score"])
assert depends_on_first(bad)[0] == 0  # only the last task of the meta-batch counts
assert depends_on_first(good)[0] > 0.05 and depends_on_first(good)[1] < 1e-4
assert good["score"] < 0.95 * bad["score"]
