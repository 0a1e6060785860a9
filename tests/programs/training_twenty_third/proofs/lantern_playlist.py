import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("lantern_playlist")
good = run("lantern_playlist", ("enumerate(counts.most_common())", "enumerate(counts.most_common(), start=1)"))
top_b, top_g = min(bad["vocab"], key=bad["vocab"].get), min(good["vocab"], key=good["vocab"].get)
assert top_b == top_g                                     # the same, most played track


def recall_of_top(r):
    idx, hits, seen = r["vocab"][top_b], 0, 0
    for row in r["test_rows"]:
        with torch.no_grad():
            guess = r["model"](row[None, :-1])[0].argmax(-1)
        at = row[1:] == idx
        hits, seen = hits + (guess[at] == idx).sum().item(), seen + at.sum().item()
    return hits / seen, seen


hb, hg = (r["hit_rate"](r["model"], r["test_rows"]) for r in (bad, good))
rb, rg = recall_of_top(bad), recall_of_top(good)
nb = bad["model"].tracks.weight[bad["vocab"][top_b]].norm().item()
ng = good["model"].tracks.weight[good["vocab"][top_b]].norm().item()
print("hit@1", hb, hg, "recall of the top track", rb, rg, "norm of its row", nb, ng)
assert nb == 0.0 and ng > 0.1
assert rb[0] == 0.0 and rg[0] > 0.1 and hg > hb + 0.02
