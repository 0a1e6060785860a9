import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer

fix = ("            setattr(model, name, nn.Parameter(bounded))", "            getattr(model, name).data.copy_(bounded)")
a, b, c = run("nmf_topics"), run("nmf_topics", fix), run("nmf_topics", ("fit(counts, 12, g)", "fit(counts, 1, g)"))
assert not in_optimizer(a["model"].topic, a["worker"].opt) and in_optimizer(a["model"].bias, a["worker"].opt)
assert rel(a["model"].topic.detach(), c["model"].topic.detach()) == 0.0
assert rel(a["model"].topic.detach(), b["model"].topic.detach()) > 0.1
assert a["worker"].trace[-1] > 1.5 * b["worker"].trace[-1], (a["worker"].trace[-1], b["worker"].trace[-1])
print("proved: nmf_topics")
