import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

wrong = run("lattice_graphs")
fixed = run("lattice_graphs", ("incoming[dst] += m", "incoming = incoming.index_add(0, dst, m)"))
print("R2:", wrong["r2"], "->", fixed["r2"], " MAE:", wrong["mae"], "->", fixed["mae"])

# change one message at a time: for how many bonds does the layer's output change?
shares = []
for r in (wrong, fixed):
    conv, crystal = r["model"].layers[0], r["train"][0]
    h = r["model"].embed(crystal["z"])
    n = crystal["edges"].shape[1]
    changed = 0
    with torch.no_grad():
        for e in range(n):
            outs = []
            for bump in (0.0, 1.0):
                rbf = torch.zeros(n, 8)
                rbf[e] += bump
                outs.append(conv(h, crystal["edges"], rbf))
            changed += not torch.equal(*outs)
    shares.append(changed / n)
sites = crystal["edges"][1].unique().numel() / n
print("share of bonds whose message reaches the output:", shares, " sites per bond:", sites)
assert abs(shares[0] - sites) < 1e-6 and shares[0] < 0.5 and shares[1] == 1.0
assert wrong["mae"] > 1.5 * fixed["mae"]
