import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch
w = run("trusted_annotators")
r = run("trusted_annotators", ("torch.autograd.grad(inner, ahead)", "torch.autograd.grad(inner, ahead, create_graph=True)"))
assert w["annotator_logits"].grad is None and w["log_lr"].grad is not None
assert in_optimizer(w["annotator_logits"], w["hyper_optimizer"])
assert torch.equal(w["annotator_logits"], torch.zeros(6))
print("trust", w["trust"].tolist(), r["trust"].tolist(), "test accuracy", w["test_accuracy"], r["test_accuracy"])
assert r["trust"][:3].sum() > 0.7
assert r["test_accuracy"] > w["test_accuracy"] + 0.05
