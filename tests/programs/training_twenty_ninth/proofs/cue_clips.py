import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The state is detached after each frame, so the loss at the last frame has no path to the frame with the card.
KEEP = ("self.state = state.detach()", "self.state = state")


def frame_grads(state):
    torch.manual_seed(4)
    model = state["ClipReader"]()
    video, label = state["test_video"][:16].clone().requires_grad_(), state["test_label"][:16]
    loss = torch.nn.functional.cross_entropy(state["read_clip"](model, video), label)
    loss.backward()
    return video.grad.abs().sum(dim=(0, 2, 3, 4)), flat_grad(model)


def score(state):
    return state["accuracy"](state["model"], state["test_video"], state["test_label"])


written, repaired = run("cue_clips"), run("cue_clips", KEEP)
frames_w, grad_w = frame_grads(written)
frames_r, grad_r = frame_grads(repaired)
print(frames_w, frames_r, rel(grad_w, grad_r), score(written), score(repaired))
assert (frames_w[:-1] == 0).all() and frames_w[-1] > 0
assert (frames_r > 0).all()
assert rel(grad_w, grad_r) > 0.3
assert score(written) < 0.45 and score(repaired) > 0.7
