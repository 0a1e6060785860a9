import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

FIX = ("q.view(N_AGENTS, batch, N_ACTIONS)", "q.view(batch, N_AGENTS, N_ACTIONS).transpose(0, 1)")
bad, good = run("vdn_gather"), run("vdn_gather", FIX)


def leak(r):
    """Does the first sample's team value depend on the other samples' observations?"""
    obs = torch.randn(6, 3, 21, requires_grad=True)
    r["net"](obs).max(-1).values.sum(0)[0].backward()
    return obs.grad[1:].abs().sum().item()


print("coverage bad", bad["before"], bad["after"], "good", good["after"], "cross-sample gradient", leak(bad), leak(good))
assert leak(bad) > 0 and leak(good) == 0
assert good["after"] > bad["after"] + 0.1
