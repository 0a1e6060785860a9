import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("motif_codes")
good = run("motif_codes", ("            picked = self.table(index)", "        picked = self.table(index)"))


def start(r):
    torch.manual_seed(r["SEED"])
    return r["SegmentCoder"]().codes.table.weight.detach()


for r in (bad, good):
    w = r["model"].codes.table.weight
    print("grad", w.grad is not None, "moved", (w.detach() - start(r)).norm().item(), "error", r["error"], "perplexity", r["used"])
assert bad["model"].codes.table.weight.grad is None
assert torch.equal(bad["model"].codes.table.weight.detach(), start(bad))
assert not torch.equal(good["model"].codes.table.weight.detach(), start(good))
assert good["error"] < 0.8 * bad["error"]
