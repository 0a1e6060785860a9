import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

bad = run("movie_bpr")
good = run("movie_bpr", (
    "self.item.weight = nn.Parameter(self.item.weight.detach() / norm.clamp(min=1.0))",
    "self.item.weight.data.div_(norm.clamp(min=1.0))"))
assert not in_optimizer(bad["model"].item.weight, bad["optimizer"])
assert in_optimizer(good["model"].item.weight, good["optimizer"])
assert in_optimizer(bad["model"].user.weight, bad["optimizer"])


def last(r):
    return float(r.output.splitlines()[-1].split("recall@10 ")[1])


print("recall@10", last(bad), "repaired", last(good))
print(bad.output.splitlines()[-1], good.output.splitlines()[-1])
assert last(good) > last(bad) + 0.05
