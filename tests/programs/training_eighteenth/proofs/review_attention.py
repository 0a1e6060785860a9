import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("review_attention")
good = run("review_attention", ("        scores.masked_fill(~mask", "        scores = scores.masked_fill(~mask"))




def study(r):
    """Attention on padding, and how much a short review's scores depend on the reviews it is batched with."""
    texts, _ = r["collate"](r["test_data"])
    with torch.no_grad():
        logits, w = r["model"](texts)
        alone = torch.cat([r["model"](t.unsqueeze(0))[0] for t, _ in r["test_data"]])
    short = (texts != 0).sum(1) < 12
    pad = (w * (texts == 0)).sum(1)[short].mean().item()
    moved = (logits - alone).abs().max(1).values[short].mean().item()
    return pad, moved


(s_bad, m_bad), (s_good, m_good) = study(bad), study(good)
losses = [[float(x.split("loss ")[1].split()[0]) for x in r.output.splitlines()] for r in (bad, good)]
print("attention on padding of short reviews:", s_bad, "repaired:", s_good)
print("change of the scores by padding:", m_bad, "repaired:", m_good)
print("losses", *losses, sep="\n")
assert s_bad > 0.05 and s_good == 0.0
assert m_bad > 0.1 and m_good < 0.5 * m_bad
assert losses[1][1] < losses[0][1] - 0.04
