import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

a = run("phone_ctc")
b = run("phone_ctc", ("log_softmax(logits, dim=-1).reshape(frames, batch, classes)", "log_softmax(logits, dim=-1).transpose(0, 1)"))
print(a["final_per"], b["final_per"])
# gradient of utterance 0's loss alone must reach utterance 0's logits only
leak = []
for m in (a, b):
    logits = torch.randn(4, 20, 9, requires_grad=True)
    lens = torch.tensor([20, 0, 0, 0])  # only utterance 0 has frames and labels
    m["ctc_objective"](logits, lens, torch.tensor([1, 2, 3]), torch.tensor([3, 0, 0, 0])).backward()
    leak.append(logits.grad[1:].abs().sum().item())
print(leak)
assert a["final_per"] > 0.6 and b["final_per"] < 0.3
assert leak[0] > 0.01 and leak[1] == 0
