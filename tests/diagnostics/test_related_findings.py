"""One event gives one finding: the others about it are named there. Independent mistakes stay two findings."""

from __future__ import annotations

import pytest
from support.folders import TESTS
from support.silent import Run, run  # noqa: F401

from tensorlens.diagnostics import diagnose, report_on
from tensorlens.diagnostics.shared.related import merged_codes
from tensorlens.records.model import Notice

ONE_EVENT = {
    "checkpoint-no-input-requires-grad--frozen-input": "element-does-not-require-grad",
    "element-does-not-require-grad--torch-tensor-of-list": "scalar-conversion-of-requires-grad",
    "element-does-not-require-grad--torch-tensor-rewrap": "copy-construct-from-tensor",
    "grad-variables-and-grad-tensors": "grad-variables-deprecated",
    "non-inplace-resize-changes-numel": "non-inplace-resize-deprecated",
    "none-grad-attribute--moved-leaf": "nonleaf-grad-access",
    "none-grad-attribute--rebound-update": "nonleaf-grad-access",
}
SEVERAL = {
    "deepcopy-nonleaf--weight-norm": {"deepcopy-nonleaf", "old-weight-norm-deprecated"},
    "anomaly-no-forward-info": {"anomaly-no-forward-info", "anomaly-nan"},
    "nonleaf-grad-access--rebound-update": {"nonleaf-grad-access", "gradient-accumulates-without-zero-grad"},
}


def script(name: str) -> str:
    return (TESTS / "catalogue" / "scripts" / f"{name}.py").read_text("utf-8")


@pytest.mark.parametrize(("name", "other"), ONE_EVENT.items())
def test_findings_about_one_event_are_one(run: Run, name: str, other: str) -> None:  # noqa: F811
    _, trace = run(script(name))
    (found,) = diagnose(trace)
    assert found.code == name.partition("--")[0]
    assert merged_codes(found) == (other,)
    assert found.severity == "error"


@pytest.mark.parametrize(("name", "codes"), SEVERAL.items())
def test_independent_mistakes_stay_several(run: Run, name: str, codes: set[str]) -> None:  # noqa: F811
    _, trace = run(script(name))
    assert {found.code for found in diagnose(trace)} == codes


NONE_OF_NONLEAF = """
import torch
x = torch.ones(2, requires_grad=True)
y = x * 2
y.sum().backward()
print(y.grad.lerp())
"""


def test_an_exception_about_none_is_explained_by_the_tensor_that_keeps_no_gradient(run: Run) -> None:  # noqa: F811
    _, trace = run(NONE_OF_NONLEAF)
    (found,) = diagnose(trace)
    assert (found.code, found.severity) == ("nonleaf-grad-access", "error")
    assert found.also == ("AttributeError: 'NoneType' object has no attribute 'lerp' [uncaught-exception]",)


def test_an_exception_about_another_none_on_the_line_is_not(run: Run) -> None:  # noqa: F811
    _, trace = run(NONE_OF_NONLEAF.replace("y.grad.lerp()", "y.grad, None.lerp()"))
    assert [found.code for found in diagnose(trace)] == ["uncaught-exception", "nonleaf-grad-access"]


def test_a_warning_that_a_finding_explains_is_known(run: Run) -> None:  # noqa: F811
    _, trace = run(NONE_OF_NONLEAF.replace("y.sum()", "import warnings; warnings.warn('mine')\ny.sum()"))
    messages = {event.message[:9]: event.index for event in trace.events if isinstance(event, Notice)}
    assert report_on(trace).explained == {messages["The .grad"]}
    assert "mine" in messages


def test_a_gradient_that_is_none_is_not_the_cause_of_another_none(run: Run) -> None:  # noqa: F811
    _, trace = run(NONE_OF_NONLEAF.replace("y.grad.lerp()", "y.grad, None.sign()"))
    assert [found.code for found in diagnose(trace)] == ["uncaught-exception", "nonleaf-grad-access"]
