import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("agg[dst] += msg", "agg.index_add_(0, dst, msg)")
bad, good = run("kelp_network"), run("kelp_network", FIX)
print(bad["score"], good["score"])
assert good["score"] > bad["score"] + 0.1


# count the links whose feeding rate influences the output of a layer at all
@torch.no_grad()
def live_links(glob):
    web = glob["test_webs"][0]
    src, dst = web.edges
    torch.manual_seed(0)
    net = glob["FoodWebNet"](glob["config"])
    h = net.embed(web.x)
    plain = net.bottom_up(h, src, dst, web.rate)
    live = 0
    for k in range(len(dst)):
        rate = web.rate.clone()
        rate[k] += 1.0
        live += int(not torch.equal(net.bottom_up(h, src, dst, rate), plain))
    return live, len(dst), len(dst.unique())


(nb, total, targets), (ng, _, _) = live_links(bad), live_links(good)
print(nb, ng, total, targets)
assert nb == targets < total and ng == total
