import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import re, torch
out = []
for r in (run("phone_ctc"), run("phone_ctc", ("STRIDES = (2, 2)", "STRIDES = (2, 1)"))):
    m = r["model"]
    a, n, t, tn = r["collate"](r["train_set"])
    with torch.no_grad():
        lp, on = m(a, n)
        raw = torch.nn.functional.ctc_loss(lp.transpose(0, 1), t, on, tn, reduction="none")
    fast = [x for x in r["test_set"] if x[2] == "fast"]
    slow = [x for x in r["test_set"] if x[2] == "slow"]
    out.append((raw.isinf().float().mean().item(), r["phone_error_rate"](m, fast), r["phone_error_rate"](m, slow),
                float(re.search(r"on test: ([\d.]+)", r.output).group(1))))
print("(share of utterances with infinite loss, PER fast, slow, all):", out)
sys.exit(0 if out[0][0] > 0.3 and out[1][0] < 0.02 and out[0][3] > out[1][3] + 0.1 else 1)
