"""Makes a recorder with all of its parts. This is the one place that knows every room of the tracer."""

from __future__ import annotations

import torch

from tensorlens.records.step_choice import StepChoice
from tensorlens.tracer.patches.optimizer_state import OptimizerState
from tensorlens.tracer.patches.optimizer_step import OptimizerSteps
from tensorlens.tracer.patches.torch_functions import HANDLERS, TRAINING_ONLY
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.services import Services
from tensorlens.tracer.saved_tensors.nonfinite_derivatives import RISKS
from tensorlens.tracer.saved_tensors.service import SavedTensors


def new_recorder(own_files: tuple[str, ...] = (), steps: StepChoice | None = None, training: bool = False) -> Recorder:
    """Returns a recorder that is not active yet. `own_files` count as the user's own code, wherever they are.

    `steps` are the training steps to record; None: all. With `training`, gradients and parameters are measured.
    """
    ops.register(HANDLERS, RISKS)
    recorder = Recorder(own_files, _services)
    if steps is not None:
        from tensorlens.tracer.patches.sampling import SampledSteps

        recorder.sampling = SampledSteps(recorder, steps)
    if training:
        from tensorlens.tracer.training.training_statistics import TrainingStatistics
        from tensorlens.tracer.training.wrapped_results import WrappedResults

        recorder.statistics = TrainingStatistics(recorder)
        WrappedResults(recorder).begin()
        recorder.training.reached.every_path = True
        recorder.call_kinds[torch.nn.functional.batch_norm] = ops.SLOW
    else:
        recorder.call_kinds.update(dict.fromkeys(TRAINING_ONLY, ops.ORDINARY))
    return recorder


def _services(recorder: Recorder) -> Services:
    return Services(SavedTensors(recorder), OptimizerState(recorder), OptimizerSteps(recorder))
