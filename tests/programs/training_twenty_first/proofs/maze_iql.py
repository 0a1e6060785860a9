import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, flat, rel

bad = run("maze_iql")
good = run("maze_iql", ("tp.add(p, alpha=tau)", "tp.add_(p, alpha=tau)"))
b, g = flat(bad["target_critic"]), flat(good["target_critic"])
print("norm of target/critic:", (b.norm() / flat(bad["critic"]).norm()).item(), "repaired", (g.norm() / flat(good["critic"]).norm()).item())
print("mean |V| at the end:", bad["v"].abs().mean().item(), "repaired", good["v"].abs().mean().item())
print("success", bad["success"], "repaired", good["success"])
assert b.norm() < 1e-3 * flat(bad["critic"]).norm() and rel(g, flat(good["critic"])) < 0.5
assert bad["v"].abs().mean() < 0.05 and good["v"].abs().mean() > 0.5
assert bad["success"] < 0.3 and good["success"] > 0.6
