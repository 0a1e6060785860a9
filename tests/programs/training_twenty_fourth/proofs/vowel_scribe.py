import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch
torch.set_num_threads(1)

bad = run("vowel_scribe")
good = run("vowel_scribe", ("strides: tuple = (2, 2)", "strides: tuple = (2, 1)"))


def silent_share(r):
    """Share of training utterances from which no gradient at all comes."""
    x, n_frames, phones, n_phones = r["collate"](r["train"])
    with torch.no_grad():
        log_probs, n_out = r["model"](x, n_frames)
    log_probs.requires_grad_()
    raw = torch.nn.functional.ctc_loss(log_probs, phones, n_out, n_phones, reduction="none")
    r["ctc"](log_probs, phones, n_out, n_phones).backward()
    no_grad = log_probs.grad.abs().sum((0, 2)) == 0
    assert torch.equal(no_grad, raw.isinf())
    assert torch.equal(raw.isinf(), n_out < n_phones)
    return no_grad.float().mean().item()


def per(r):
    return r["phone_error_rate"](r["model"], r["test"])


print("utterances without gradient:", silent_share(bad), silent_share(good))
print("PER wrong/right:", per(bad), per(good))
print(bad.output, good.output, sep="\n")
assert silent_share(bad) > 0.25 and silent_share(good) == 0.0
assert per(bad) > 2 * per(good)
