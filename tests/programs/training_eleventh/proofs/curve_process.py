import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
fix = ("nn.MultiheadAttention(dim, heads)", "nn.MultiheadAttention(dim, heads, batch_first=True)")
def leak(r):
    torch.manual_seed(1)
    xc, yc, xt, yt = r["episode"](24)
    with torch.no_grad():
        m = r["model"].eval(); a = m(xc, yc, xt).mean[0]; yc = yc.clone(); yc[1:] = yc[1:].flip(0) + 1.0; b = m(xc, yc, xt).mean[0]
    return (a - b).abs().max().item()
for s in (9, 10):
    seed = ("manual_seed(9)", f"manual_seed({s})")
    a, b = run("curve_process", seed), run("curve_process", seed, fix)
    print("nll", a["nll"], b["nll"], "rmse", a["rmse"], b["rmse"], "task 0 moves when other tasks change:", leak(a), leak(b))
    assert leak(a) > 0.01 and leak(b) < 1e-5
    assert b["nll"] < a["nll"] - 0.02
