import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel
N = "domain_transfer_tokens"
def drift(*edits):
    r = run(N, *edits)
    w = r["model"].encoder.tokens.weight.detach()
    k = r["base_vocab"]
    assert w.grad is None
    assert rel(w[k:], r["before"][k:]) > 0.01
    assert r["model"].encoder.tokens.weight.grad[:k].abs().max() == 0
    return rel(w[:k], r["before"][:k])
assert drift() > 0.03, drift()
assert drift(('or "rnn" in name', 'or "rnn" in name or "tokens" in name')) == 0
print(f"proved: {N}")
