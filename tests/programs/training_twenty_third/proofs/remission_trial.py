import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ("    score = score[order]\n", "    score, event = score[order], event[order]\n")
bad = run("remission_trial", capture=("main",))
good = run("remission_trial", fix, capture=("main",))
truth = bad["TRUE_BETA"]
eb = (bad.locals["main"]["beta"] - truth).abs()
eg = (good.locals["main"]["beta"] - truth).abs()
print("error of log HR", eb.tolist(), "->", eg.tolist())
print("c-index", bad.locals["main"]["c_index"], "->", good.locals["main"]["c_index"])

# the loss against the definition, on one small cohort
torch.manual_seed(0)
s, t, e = torch.randn(50), torch.rand(50), torch.rand(50) < 0.5
direct = -sum(s[i] - torch.logsumexp(s[t >= t[i]], 0) for i in range(50) if e[i]) / e.sum()
assert abs(good["partial_likelihood"](s, t, e) - direct) < 1e-4
assert abs(bad["partial_likelihood"](s, t, e) - direct) > 1e-2
# and it must not depend on the order of the patients
p = torch.randperm(50)
assert abs(bad["partial_likelihood"](s[p], t[p], e[p]) - bad["partial_likelihood"](s, t, e)) > 1e-2
assert abs(good["partial_likelihood"](s[p], t[p], e[p]) - good["partial_likelihood"](s, t, e)) < 1e-4
assert eg.max() < 0.15 and eb[0] > 0.25
