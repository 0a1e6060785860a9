import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("rank_clicks")
right = run("rank_clicks", ("nn.Embedding(RANKS, 1, padding_idx=0)", "nn.Embedding(RANKS, 1)"))
w, r = wrong["model"], right["model"]
print("logit of the first rank", w.rank_logit.weight[0].item(), r.rank_logit.weight[0].item())
print("gradient of the first rank", w.rank_logit.weight.grad[0].item(), r.rank_logit.weight.grad[0].item())
print("held-out log loss", wrong["held_out"], right["held_out"], "attractiveness error", wrong["error"], right["error"])
assert w.rank_logit.weight[0].item() == 0.0 and w.rank_logit.weight.grad[0].item() == 0.0
assert abs(r.rank_logit.weight[0].item()) > 0.5
ew, er = w.examination().tolist(), r.examination().tolist()
print("examination of the first two ranks (truth 0.95, 0.72): wrong", ew[:2], "repaired", er[:2])
assert wrong["held_out"] > right["held_out"] + 0.015 and wrong["error"] > right["error"]
assert ew[0] == 0.5 and ew[1] > ew[0] and er[0] > er[1]
