import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

w = run("ppo_harbour", capture=("update", "main"))
f = run("ppo_harbour", ("behaviour = agent.state_dict()", "behaviour = {k: v.clone() for k, v in agent.state_dict().items()}"), capture=("main",))
agent, behaviour = w.locals["main"]["agent"], w.locals["main"]["behaviour"]
assert all(behaviour[k].data_ptr() == p.data_ptr() for k, p in agent.named_parameters())
assert all(f.locals["main"]["behaviour"][k].data_ptr() != p.data_ptr() for k, p in f["agent"].named_parameters())
assert max(s for _, s, _ in w["log"]) == 0 and max(abs(k) for _, _, k in w["log"]) < 1e-6
assert sum(s for _, s, _ in f["log"]) / len(f["log"]) > 0.02
mean_move = lambda r: sum(r["moved"]) / len(r["moved"])
print("moved", mean_move(w), mean_move(f), "reward", w["log"][-1][0], f["log"][-1][0], "clip", sum(s for _, s, _ in f["log"]) / len(f["log"]))
assert mean_move(w) > 2 * abs(mean_move(f))
