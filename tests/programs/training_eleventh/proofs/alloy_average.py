import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel
import torch

wrong = run("alloy_average")
fixed = run("alloy_average", ("copy.deepcopy(net).to(torch.bfloat16).eval()", "copy.deepcopy(net).eval()"))


def score(r, net):
    return r["rmse"](net, r["x_test"], r["y_test"])


live, avg, true = score(wrong, wrong["net"]), score(wrong, wrong["averaged"]), score(fixed, fixed["averaged"])
rounded = score(fixed, fixed["averaged"].to(torch.bfloat16))  # the right average, only stored in bfloat16
gap = rel(flat(wrong["averaged"]).float(), flat(fixed["averaged"]).float())
same_run = rel(flat(wrong["net"]), flat(fixed["net"]))
print(f"live {live:.4f} average {avg:.4f} float32 average {true:.4f} rounded at the end {rounded:.4f} weight gap {gap:.3f} live gap {same_run}")
sys.exit(0 if same_run == 0 and gap > 0.05 and avg > 1.3 * rounded and avg > 1.2 * live else 1)
