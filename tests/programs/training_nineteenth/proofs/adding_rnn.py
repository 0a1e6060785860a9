import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

torch.set_num_threads(1)
real = torch.nn.utils.clip_grad_norm_
seen = []


def spy(params, max_norm, *a, **k):
    params = list(params)
    seen.append(len(params))
    return real(params, max_norm, *a, **k)


torch.nn.utils.clip_grad_norm_ = spy
wrong = run("adding_rnn")
n_wrong, seen = set(seen), []
fixed = run("adding_rnn", ("trainable = filter(lambda p: p.requires_grad, model.parameters())",
                           "trainable = [p for p in model.parameters() if p.requires_grad]"))
n_fixed = set(seen)
print("clipped tensors", n_wrong, "->", n_fixed)
print("test mse", wrong["history"][-1], "->", fixed["history"][-1])
assert n_wrong == {0} and n_fixed == {5}
assert fixed["history"][-1] < 0.5 * wrong["history"][-1]
