import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

repairs = (
    ("squared = (code - mean).pow(2)", "squared = (code - mean.squeeze(1)).pow(2)"),
    ("return 0.5 * (log_var + squared", "return 0.5 * (log_var.squeeze(1) + squared"),
)
lib, fixed = run("code_ring", as_main=False), run("code_ring", *repairs, as_main=False)

torch.manual_seed(0)
code = torch.empty(64).uniform_(-1, 1)
log_var = torch.full((64, 1), -2.0)
good, shuffled = code[:, None].clone(), code[torch.randperm(64), None]
reference = F.gaussian_nll_loss(good, code[:, None], log_var.exp())
assert abs(fixed["gaussian_nll"](code, good, log_var) - reference) < 1e-5
assert abs(lib["gaussian_nll"](code, good, log_var) - reference) > 0.5
# a perfect reading and a shuffled one have the same loss: nothing rewards reading the right code
assert abs(lib["gaussian_nll"](code, good, log_var) - lib["gaussian_nll"](code, shuffled, log_var)) < 1e-5
assert fixed["gaussian_nll"](code, shuffled, log_var) > fixed["gaussian_nll"](code, good, log_var) + 1

mean = torch.zeros(64, 1, requires_grad=True)
lib["gaussian_nll"](code, mean, log_var).backward()
assert (mean.grad - mean.grad.mean()).abs().max() < 1e-5  # one and the same gradient for every row
mean.grad = None
fixed["gaussian_nll"](code, mean, log_var).backward()
assert torch.corrcoef(torch.stack([mean.grad.flatten(), -code]))[0, 1] > 0.99

full, full_repaired = run("code_ring"), run("code_ring", *repairs)
assert abs(full["code_corr"]) < 0.5 and abs(full_repaired["code_corr"]) > 0.95
