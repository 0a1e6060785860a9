import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

fix = ("F.log_softmax(scores * mask, dim=1)", "F.log_softmax(scores.masked_fill(mask == 0, float('-inf')), dim=1)")
bad = run("hotel_lists", capture=("main",))
good = run("hotel_lists", fix, capture=("main",))

# The same lists, padded by 30 more empty places: the loss must not depend on that.
torch.manual_seed(0)
scores, booked, mask = torch.randn(16, 5), torch.randint(0, 5, (16,)), torch.ones(16, 5)
wide = torch.cat([scores, torch.zeros(16, 30)], 1), booked, torch.cat([mask, torch.zeros(16, 30)], 1)
shift = {n: (r["listwise_nll"](*wide) - r["listwise_nll"](scores, booked, mask)).item() for n, r in (("bad", bad), ("good", good))}
b, g = bad.locals["main"], good.locals["main"]
print("loss change by padding", shift, "test NLL", b["nll"], g["nll"], "MRR", b["mrr"], g["mrr"])
ok = shift["bad"] > 0.5 and abs(shift["good"]) < 1e-5 and g["nll"] < b["nll"] - 0.05 and g["mrr"] > b["mrr"]
sys.exit(0 if ok else 1)
