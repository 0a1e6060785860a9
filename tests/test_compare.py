"""What `compare` finds for well-known operations, measured by torch itself in this process."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from probing import by_input, probe, values

from tensorlens.compare import ProbeOptions, list_probes, parse_shape
from tensorlens.compare.records import from_dict, to_dict
from tensorlens.errors import UsageError

SEVEN = ("detach", "detach_", "data", "clone", "copy_", "requires_grad_", "no_grad")


@pytest.fixture(scope="module")
def seven() -> Any:
    return probe(*SEVEN)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("same_object", (False, True, False, False, True, True, False)),
        ("shares_storage", (True, True, True, False, True, True, False)),
        ("shares_version_counter", (True, True, False, False, True, True, False)),
        ("requires_grad", (False, False, False, True, True, True, False)),
        ("is_leaf", (True, True, True, False, False, False, True)),
        ("changes_source", (False, "requires_grad, graph", False, False, "values, graph", False, False)),
        ("gradient_reaches_source", (False, False, False, True, "zeros", True, False)),
        ("gradient_is_identity", (False, False, False, True, False, True, False)),
        ("nodes_added", (0, 0, 0, 1, 1, 0, 0)),
        ("write_result_then_backward", ("error", "error", "silently wrong", "fine", "error", "error", "fine")),
        ("write_source_then_backward", ("error", "error", "silently wrong", "fine", "error", "error", "fine")),
        ("earlier_use_then_backward", ("fine", "error", "fine", "fine", "error", "fine", "fine")),
        ("allowed_on_leaf_requiring_grad", (True, True, True, True, False, True, True)),
        ("allowed_under_no_grad", (True,) * 7),
    ],
)
def test_the_ways_to_leave_the_graph(seven: Any, name: str, expected: tuple[Any, ...]) -> None:
    assert values(seven, name) == expected


def test_a_silently_wrong_gradient_is_shown_beside_the_right_one(seven: Any) -> None:
    row = seven.row("write_result_then_backward")
    text = row.answers(SEVEN.index("data"))[0].text
    assert text.startswith("silently wrong: gradient [[1.1, 1.2], ")
    assert text.endswith("right is [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]")


def test_errors_are_in_torchs_words_with_the_code_of_their_page(seven: Any) -> None:
    written = seven.row("write_result_then_backward").answers(0)[0]
    assert "has been modified by an inplace operation" in written.error
    assert written.code == "saved-tensor-modified-inplace"
    refused = seven.row("allowed_on_leaf_requiring_grad").answers(SEVEN.index("copy_"))[0]
    assert "a leaf Variable that requires grad" in refused.error
    assert refused.code == "leaf-modified-inplace"


def test_the_answers_that_depend_on_the_input(seven: Any) -> None:
    assert by_input(seven, "runs", SEVEN.index("detach_"))["view"] is False
    assert by_input(seven, "changes_source", SEVEN.index("requires_grad_"))["no_grad"] == "requires_grad"
    assert by_input(seven, "write_result_then_backward", SEVEN.index("requires_grad_"))["leaf"] == "write refused"


@pytest.mark.parametrize("name", ["reshape", "flatten", "ravel", "contiguous"])
def test_a_copy_only_of_a_non_contiguous_input(name: str) -> None:
    found = by_input(probe(name, "clone"), "shares_storage", 0)
    assert found.pop("non_contiguous") is False
    assert all(found.values())


@pytest.mark.parametrize("name", ["float", "to"])
def test_a_conversion_is_the_tensor_itself_where_nothing_is_to_convert(name: str) -> None:
    call = name if name == "float" else "x.to(torch.float32)"
    found = by_input(probe(call, "clone"), "same_object", 0)
    assert found.pop("float64") is False
    assert all(found.values())


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("clone", "copy_", {"same_object", "shares_storage", "changes_source", "gradient_reaches_source"}),
        ("detach", "data", {"shares_version_counter", "write_result_then_backward", "write_source_then_backward"}),
        ("view", "reshape", {"runs"}),
        ("expand", "repeat", {"shares_storage", "is_view", "write_result_then_backward"}),
        ("squeeze", "unsqueeze", {"result_shape", "grad_fn"}),
        ("contiguous", "clone", {"same_object", "shares_storage"}),
        ("x + y", "x.add_(y)", {"changes_source", "runs", "earlier_use_then_backward"}),
        ("torch.tensor(x)", "x.clone()", {"requires_grad", "gradient_reaches_source", "warns"}),
        ("no_grad", "inference_mode", {"use_in_graph", "write_result_then_backward"}),
        ("split", "chunk", {"returns", "result_shape"}),
        ("narrow", "index_select", {"shares_storage", "is_view"}),
        ("x[1:]", "x[[1, 2]]", {"shares_storage", "is_view"}),
    ],
)
def test_well_known_pairs_differ_where_they_are_known_to(first: str, second: str, apart: set[str]) -> None:
    comparison = probe(first, second)
    assert apart <= {row.probe for row in comparison.rows if row.differs}


def test_what_is_the_same_is_not_said_to_differ() -> None:
    comparison = probe("x.to(dtype)", "x.type(dtype)")
    assert not [row.probe for row in comparison.rows if row.differs and row.group != "cost"]
    assert values(comparison, "result_dtype") == ("float64", "float64")


def test_gradient_flows_to_the_source_of_a_copy() -> None:
    comparison = probe("copy_", "torch.empty_like(x).copy_(x)")
    assert values(comparison, "gradient_reaches_y")[0] is True
    assert values(comparison, "gradient_is_identity") == (False, True)
    assert values(comparison, "shares_storage") == (True, False)


def test_memory_is_counted_in_sizes_of_x() -> None:
    comparison = probe("x.detach()", "x.clone()", "x.repeat(3, 1)", size=4096, shape=(64, 64))
    none, one, three = values(comparison, "bytes_allocated")
    assert (none, one) == (0, 64 * 64 * 4)
    assert three == pytest.approx(3 * one, rel=0.01)
    assert comparison.row("bytes_allocated").differs  # type: ignore[union-attr]


def test_time_is_a_multiple_of_the_fastest() -> None:
    ratios = values(probe("x.detach()", "x @ x @ x", shape=(20, 20), size=400), "time_ratio")
    assert ratios[0] == 1
    assert ratios[1] > 2


def test_statements_and_numpy_are_operands_too() -> None:
    comparison = probe("x += 1", "with torch.no_grad(): x.add_(1)", "x.detach().numpy()")
    assert values(comparison, "changes_source")[:2] == ("values, graph", "values")
    assert values(comparison, "shares_storage") == (True, True, True)
    assert values(comparison, "write_result_then_backward")[2] == "silently wrong"


def test_a_function_of_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import torch\ndef twice(x):\n    return x * 2\ndef total(x, y):\n    return x + y\n")
    comparison = probe(f"{script}:twice", f"{script}:total")
    assert values(comparison, "gradient_of_sum") == ("2 everywhere", "1 everywhere")
    with pytest.raises(UsageError, match="has no function nothing"):
        probe(f"{script}:nothing", "clone")
    broken = tmp_path / "broken.py"
    broken.write_text("{}['key']\n")
    with pytest.raises(UsageError, match="can't be run: KeyError: 'key'"):
        probe(f"{broken}:other", "clone")
    with pytest.raises(UsageError, match="no such file"):
        probe(f"{tmp_path / 'other.py'}:twice", "clone")


@pytest.mark.parametrize(
    ("operand", "line"),
    [
        ("detch", 'unknown operand "detch"; nearest: detach, detach_'),
        ("qqqqqq", 'unknown operand "qqqqqq"; an operand is an op, a context or code such as "x.view(-1)"'),
        ("x.detch()", "nearest: detach"),
        ("x +", 'can\'t read the operand "x +": invalid syntax'),
        (" ", "an operand is empty"),
        ("z + x", "name 'z' is not defined"),
        ("map_", 'no arguments found for map_: give its arguments: "x.map_('),
    ],
)
def test_a_wrong_operand_gets_one_clear_line(operand: str, line: str) -> None:
    with pytest.raises(UsageError) as raised:
        probe(operand, "clone")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["bitwise_and", "imag", "F.layer_norm", "F.conv_transpose2d", "addbmm", "torch.cat"])
def test_arguments_and_inputs_are_found_for_ops_that_are_particular(name: str) -> None:
    assert values(probe(name, "clone"), "runs") == (True, True)


def test_the_input_is_what_was_asked_for() -> None:
    comparison = probe(
        "clone", "contiguous", shape=(4, 5), dtype="float64", leaf=True, contiguous=False, view=True, requires_grad=True
    )
    (only,) = comparison.inputs
    assert (only.shape, only.dtype, only.leaf, only.contiguous, only.view) == ((4, 5), "float64", True, False, True)
    assert values(comparison, "shares_storage") == (False, False)


@pytest.mark.parametrize(
    "options",
    [
        {"leaf": True},
        {"leaf": False, "requires_grad": True},
        {"requires_grad": False},
        {"contiguous": False},
        {"view": True},
        {"view": True, "contiguous": False, "requires_grad": False},
        {"shape": ()},
        {"shape": (5,), "contiguous": False},
        {"shape": (0,)},
        {"dtype": "bool"},
        {"dtype": "int64"},
        {"dtype": "complex64"},
    ],
)
def test_every_input_is_made_as_its_description_says(options: dict[str, Any]) -> None:
    from tensorlens.probe.inputs import SHAPES, inputs_for, make

    for spec in inputs_for(options.get("shape", SHAPES[0]), options):
        x = make(spec).x
        assert tuple(x.shape) == spec.shape
        assert str(x.dtype) == f"torch.{spec.dtype}"
        assert x.requires_grad == spec.requires_grad
        assert x.is_leaf == spec.leaf
        assert x._is_view() == spec.view
        assert x.is_contiguous() == spec.contiguous or math.prod(spec.shape) < 2 or 1 in spec.shape
    comparison = probe("clone", "detach", **options)
    assert values(comparison, "runs") == (True, True)


def test_a_shape_is_read_as_people_write_it() -> None:
    assert parse_shape("2,3") == parse_shape("2x3") == parse_shape("(2, 3)") == (2, 3)
    assert parse_shape("7") == (7,)
    assert parse_shape("()") == ()
    for wrong in ("", "a", "-1", "2,b"):
        with pytest.raises(UsageError, match="not a shape"):
            parse_shape(wrong)


def test_impossible_options_are_usage_errors() -> None:
    for wrong in ({"size": 0}, {"timeout": 0}, {"shape": (-1,)}):
        with pytest.raises(UsageError):
            ProbeOptions(**wrong)
    with pytest.raises(UsageError, match="no such dtype"):
        probe("clone", "detach", dtype="float31")
    with pytest.raises(UsageError, match="device"):
        probe("clone", "detach", device="nowhere")


def test_every_probe_asks_a_question() -> None:
    for each in list_probes():
        assert "?" in each.question
        assert each.label


def test_a_comparison_survives_its_json(seven: Any) -> None:
    assert from_dict(to_dict(seven)) == seven
    with pytest.raises(ValueError, match="not a"):
        from_dict({"format": "something else"})


def test_the_summary_says_when_to_use_which_and_what_to_beware_of() -> None:
    lines = probe("detach", "data", "clone").summary.splitlines()
    assert lines[0].startswith("`x.detach()` gives another tensor on x's memory and cuts the graph")
    assert "Beware: write the result of `x.data`, and backward is silently wrong" in lines[1]
    assert "Use it when the result needs memory of its own" in lines[2]
    assert probe("reshape", "clone").summary.startswith(
        "`x.reshape(-1)` gives a view of x (but gives new memory for a non-contiguous x)"
    )


@pytest.mark.parametrize(
    ("operand", "call", "kind"),
    [
        ("clone", "x.clone()", "method"),
        ("x.clone", "x.clone()", "method"),
        ("torch.Tensor.clone", "x.clone()", "method"),
        ("torch.clone", "torch.clone(x)", "function"),
        ("data", "x.data", "property"),
        ("view", "x.view(-1)", "method"),
        ("where", "x.where(x > 0.3, y)", "method"),
        ("relu", "x.relu()", "method"),
        ("F.relu", "F.relu(x)", "function"),
        ("torch.nn.functional.relu", "torch.nn.functional.relu(x)", "function"),
        ("linalg.norm", "torch.linalg.norm(x)", "function"),
        ("no_grad", "with torch.no_grad(): r = x * 2", "context"),
        ("torch.no_grad()", "with torch.no_grad(): r = x * 2", "context"),
        ("set_grad_enabled", "with torch.set_grad_enabled(False): r = x * 2", "context"),
        ("enable_grad", "with torch.enable_grad(): r = x * 2", "context"),
        ("x[1:]", "x[1:]", "code"),
        ("x", "x", "code"),
    ],
)
def test_an_operand_is_read_as_people_mean_it(operand: str, call: str, kind: str) -> None:
    first = probe(operand, "x * 1").operands[0]
    assert (first.operand, first.call, first.kind) == (operand, call, kind)


def test_a_write_that_changes_no_value_is_still_a_write() -> None:
    assert values(probe("relu_", "relu"), "changes_source") == ("written with the same values, graph", False)


def test_a_call_that_spoils_an_earlier_use_in_silence() -> None:
    comparison = probe("x.add_(1)", "x.data.add_(1)", "with torch.no_grad(): x.add_(1)")
    assert values(comparison, "earlier_use_then_backward") == ("error", "silently wrong", "error")
    assert values(comparison, "allowed_on_leaf_requiring_grad") == (False, True, True)
    assert "Beware: use x before `x.data.add_(1)`, and backward is silently wrong" in comparison.summary
