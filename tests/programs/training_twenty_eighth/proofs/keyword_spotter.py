import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "keyword_spotter"
repair = ("torch.sqrt(real**2 + imaginary**2)", "torch.sqrt(real**2 + imaginary**2 + 1e-8)")


def bank_gradient(*edits, silence):
    program = run(name, *edits, as_main=False)
    torch.manual_seed(0)
    model = program["KeywordNet"]()
    wave = torch.randn(4, 600)
    lengths = torch.full((4,), 600)
    if silence:
        wave[0, 400:] = 0.0
        lengths[0] = 400
    loss = torch.nn.functional.cross_entropy(model(wave, lengths), torch.arange(4))
    assert torch.isfinite(loss)
    loss.backward()
    return model.bank.real.grad


assert torch.isnan(bank_gradient(silence=True)).all()
assert torch.isfinite(bank_gradient(silence=False)).all()
assert torch.isfinite(bank_gradient(repair, silence=True)).all()

wrong, right = run(name), run(name, repair)
print("updates:", wrong["trainer"].updates, right["trainer"].updates, "of", wrong["batches"])
print("accuracy:", wrong["score"], right["score"])
assert wrong["trainer"].updates < 0.7 * wrong["batches"]
assert right["trainer"].updates == right["batches"]
assert right["score"] > wrong["score"] + 0.15
