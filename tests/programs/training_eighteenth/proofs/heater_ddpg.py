import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

OLD = "        t.lerp_(s, TAU)\n"
bad = run("heater_ddpg")
good = run("heater_ddpg", (OLD, OLD + "    for t, s in zip(target.buffers(), source.buffers()):\n        t.copy_(s)\n"))
for n, r in (("bad", bad), ("good", good)):
    print(n, "score", r["score"], "target mean", r["critic_t"].norm.mean.tolist(), "online mean", r["critic"].norm.mean.tolist())
    o = torch.cat([m[0] for m in r["memory"][-200:]])
    a = torch.cat([m[1] for m in r["memory"][-200:]])
    r["critic"].eval()
    with torch.no_grad():
        r["gap"] = (r["critic"](o, a) - r["critic_t"](o, a)).abs().mean().item()
    print("   |Q - Q_target|", r["gap"])
assert bad["critic_t"].norm.mean.abs().max() == 0 and bad["actor_t"][0].var.eq(1).all()
assert bad["critic"].norm.mean.min() > 3
assert bad["gap"] > 3 * good["gap"]
assert good["score"] > bad["score"] + 0.1
