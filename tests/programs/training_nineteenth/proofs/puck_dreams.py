import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

bad = run("puck_dreams")
good = run("puck_dreams", ("        s, r = model.predict(s, a)\n", "        s, r = model(s, a)\n"))


def cut(m):
    rewards, entropies, _ = m["imagine"](m["model"], m["actor"], m["env_reset"](16))
    return rewards.requires_grad, entropies.requires_grad


def ret(m):
    torch.manual_seed(0)
    return m["evaluate"](m["actor"], 2000)


print("rewards/entropies have a graph:", cut(bad), cut(good), "returns", ret(bad), ret(good))
assert cut(bad) == (False, True) and cut(good) == (True, True)
assert ret(good) > ret(bad) + 15
