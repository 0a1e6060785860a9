import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import numpy as np

FIX = ("torch.as_tensor(obs, dtype=torch.float32))", "torch.tensor(obs, dtype=torch.float32))")
bad, good = run("puck_glide"), run("puck_glide", FIX)


def distinct_per_episode(ns):
    obs = ns["demos"].tensors()[0][:40 * ns["HORIZON"]].reshape(40, ns["HORIZON"], 6)
    return [len(np.unique(e.numpy(), axis=0)) for e in obs]


def label_error(ns):
    obs, act = ns["demos"].tensors()
    return float(np.mean([np.abs(ns["expert"](o) - a).mean() for o, a in zip(obs.numpy(), act.numpy())]))


print("distinct observations in an episode:", set(distinct_per_episode(bad)), set(distinct_per_episode(good)))
print("labels against the expert on the stored observations:", label_error(bad), label_error(good))
print("final distance:", bad["final"], good["final"])
assert set(distinct_per_episode(bad)) == {1} and min(distinct_per_episode(good)) == 30
assert label_error(good) < 1e-6 and label_error(bad) > 0.3
assert bad["final"] > 3 * good["final"]
