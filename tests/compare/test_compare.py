"""Checks what `compare` measures for well-known operations, in this process."""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import Any

import pytest
from support.probing import by_input, probe, values

from tensorlens.compare import ProbeOptions, list_probes, parse_shape
from tensorlens.compare.comparison_records import from_dict, to_dict
from tensorlens.compare.input_conditions import exceptions
from tensorlens.compare.programs import programs
from tensorlens.errors import UsageError

SEVEN = ("detach", "detach_", "data", "clone", "x.copy_", "requires_grad_", "no_grad")


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
        ("changes_source", (False, "requires_grad, grad_fn", False, False, "values, grad_fn", False, False)),
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
    assert text.startswith("silently wrong: gradient [[-0.5, 3], ")
    assert text.endswith("right is [[-1.5, 2], [0, 2], [0.5, -0.5]]")


def test_errors_are_in_torchs_words_with_the_code_of_their_page(seven: Any) -> None:
    written = seven.row("write_result_then_backward").answers(0)[0]
    assert "has been modified by an inplace operation" in written.error
    assert written.code == "saved-tensor-modified-inplace"
    refused = seven.row("allowed_on_leaf_requiring_grad").answers(SEVEN.index("x.copy_"))[0]
    assert "a leaf Variable that requires grad" in refused.error
    assert refused.code == "leaf-modified-inplace"


def test_the_answers_that_depend_on_the_input(seven: Any) -> None:
    assert by_input(seven, "runs", SEVEN.index("detach_"))["view"] is False
    assert by_input(seven, "changes_source", SEVEN.index("requires_grad_"))["no_grad"] == "requires_grad"
    assert by_input(seven, "write_result_then_backward", SEVEN.index("requires_grad_"))["leaf"] == "write refused"


@pytest.mark.parametrize("name", ["reshape", "flatten", "ravel", "contiguous"])
def test_a_copy_only_of_a_non_contiguous_input(name: str) -> None:
    comparison = probe(name, "clone")
    found = by_input(comparison, "shares_storage", 0)
    copied = {"transposed", "first_columns"} | ({"every_second"} if name in ("contiguous", "ravel") else set())
    assert {key for key, shares in found.items() if not shares} == {
        key for key in found if copied & set(key.split("+"))
    }


@pytest.mark.parametrize("name", ["float", "to"])
def test_a_conversion_is_the_tensor_itself_where_nothing_is_to_convert(name: str) -> None:
    call = name if name == "float" else "x.to(torch.float32)"
    found = by_input(probe(call, "clone"), "same_object", 0)
    assert {key for key, same in found.items() if not same} == {key for key in found if "float64" in key.split("+")}


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("clone", "x.copy_", {"same_object", "shares_storage", "changes_source", "gradient_reaches_source"}),
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
    comparison = probe("x.copy_", "copy_")
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
    assert values(comparison, "changes_source")[:2] == ("values, grad_fn", "values")
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
    from tensorlens.compare.probe.inputs import SHAPES, inputs_for, make

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


def test_the_summary_says_what_each_is_for_and_what_to_beware_of() -> None:
    lines = probe("detach", "data", "clone").summary.splitlines()
    assert lines[0].startswith("`x.detach()` gives another tensor on x's memory; it is a constant for autograd")
    assert "Beware: write the result of `x.data`, and backward is silently wrong" in lines[1]
    assert lines[2] == (
        "`x.clone()` gives a copy of x; gradient flows back to x unchanged. "
        "You may write to the result before backward."
    )
    assert probe("reshape", "clone").summary.startswith(
        "`x.reshape(-1)` gives a view of x (but gives new memory for a transposed x, or x = b[..., :n])"
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
        ("where", "torch.where(x > 0.3, 0, x)", "function"),
        ("reshape(-1)", "x.reshape(-1)", "code"),
        ("set_grad_enabled(False)", "with torch.set_grad_enabled(False): r = x * 2", "context"),
        ("Parameter(x)", "nn.Parameter(x)", "code"),
        ("deepcopy(x.detach())", "copy.deepcopy(x.detach())", "code"),
        ("torch.from_numpy", "torch.from_numpy(x.detach().numpy())", "function"),
        ("np.asarray(x.detach())", "np.asarray(x.detach())", "code"),
        ("copy_", "torch.empty_like(x).copy_(x)", "function"),
        ("to", "x.to(dtype)", "method"),
        ("masked_fill", "x.masked_fill(x > 0.3, 0)", "method"),
        ("autograd.grad", "torch.autograd.grad(x.sum(), x)", "function"),
        ("abs()", "x.abs()", "code"),
        ("clone(x)", "torch.clone(x)", "code"),
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
    assert values(probe("x.add_(0)", "relu_"), "changes_source") == (
        "grad_fn, written with the same values",
        "values, grad_fn",
    )


def test_a_call_that_spoils_an_earlier_use_in_silence() -> None:
    comparison = probe("x.add_(1)", "x.data.add_(1)", "with torch.no_grad(): x.add_(1)")
    assert values(comparison, "earlier_use_then_backward") == ("error", "silently wrong", "error")
    assert values(comparison, "allowed_on_leaf_requiring_grad") == (False, True, True)
    assert "Beware: use x before `x.data.add_(1)`, and backward is silently wrong" in comparison.summary


# --- what a reader found to be false, each with its proof in tests/compare/test_compare_property.py ---


@pytest.mark.parametrize(
    "spoils",
    [
        "torch.set_grad_enabled(False)",
        "torch.set_default_dtype(torch.float64)",
        "torch.use_deterministic_algorithms(True)",
        "torch.autograd.set_detect_anomaly(True)",
        "torch.set_default_device('meta')",
        "__import__('warnings').simplefilter('error')",
        "torch.autocast('cpu', dtype=torch.bfloat16).__enter__()",
    ],
)
def test_an_operand_that_changes_a_setting_spoils_no_other(spoils: str) -> None:
    comparison = probe("clone", spoils)
    assert values(comparison, "requires_grad")[0] is True
    assert values(comparison, "gradient_reaches_source")[0] is True
    assert values(comparison, "result_dtype")[0] == "float32"
    assert values(comparison, "earlier_use_then_backward") == ("fine", "fine")


def test_a_setting_that_is_left_changed_is_a_row() -> None:
    comparison = probe("torch.no_grad().__enter__()", "clone")
    assert values(comparison, "changes_setting") == ("grad mode", False)


@pytest.mark.parametrize(
    ("operand", "says"),
    [
        ("nn.Parameter(x)", "the result is a new leaf: its gradient stays in the result"),
        ("x.detach().requires_grad_()", "the result is a new leaf: its gradient stays in the result"),
        ("x.data.copy_(y)", "it carries gradient to y, none to x"),
    ],
)
def test_what_requires_grad_is_never_called_a_constant(operand: str, says: str) -> None:
    line = probe(operand, "x.clone()").summary.splitlines()[0]
    assert says in line
    assert "constant" not in line


def test_what_happens_to_grad_counts_as_a_change_of_x() -> None:
    comparison = probe("x.backward()", "x.retain_grad()", leaf=True, shape=(1,))
    assert values(comparison, "changes_source") == (".grad", False)
    assert values(probe("x.retain_grad()", "x.clone()"), "changes_source") == ("retains_grad", False)
    assert values(probe("backward", "autograd.grad"), "fills_grad") == ("the leaf behind x", False)


def test_relu_differs_from_clone_in_values_and_gradient() -> None:
    comparison = probe("relu", "abs", "clone")
    assert len(set(values(comparison, "values"))) == 3
    assert values(comparison, "gradient_is_identity") == (False, False, True)
    assert values(probe("relu_", "clone"), "changes_source")[0] == "values, grad_fn"


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("torch.zeros_like(x)", "torch.ones_like(x)", False),
        ("floor", "ceil", False),
        ("x.sin()", "x.cos()", False),
        ("x * 1", "clone", True),
        ("x.to(torch.float64)", "double", True),
        ("x.exp().log()", "x * 1", True),  # up to rounding
        ("log", "log2", False),
    ],
)
def test_values_are_compared(first: str, second: str, equal: bool) -> None:
    one, other = values(probe(first, second), "values")
    assert (one == other) is equal


def test_random_and_unset_numbers_are_called_so() -> None:
    row = probe("torch.rand_like(x)", "torch.empty_like(x)").row("values")
    assert row is not None
    assert row.answers(0)[0].text.startswith("random, such as")
    assert row.answers(1)[0].text == "not set: uninitialized memory"


def test_the_grad_fn_of_an_x_that_came_back_is_its_own() -> None:
    comparison = probe("contiguous", "requires_grad_", "x.to()")
    assert values(comparison, "grad_fn") == ("x's own",) * 3
    assert by_input(comparison, "grad_fn", 0)["transposed"] == "CloneBackward0"


@pytest.mark.parametrize(
    ("operand", "row", "words"),
    [
        ("x.numpy()", "runs", {"an x that requires grad"}),
        ("x.view(-1)", "runs", {"a transposed x, or x = b[..., :n]"}),
        ("x.clone()", "keeps_strides", {"an x with gaps in memory"}),
        ("x.clone()", "contiguous", {"a transposed x"}),
        ("clamp(min=0.3)", "gradient_is_identity", set()),
        ("masked_fill", "gradient_of_sum", set()),
        ("F.dropout(x)", "gradient_is_identity", set()),
    ],
)
def test_sub_rows_name_the_property_that_matters(operand: str, row: str, words: set[str]) -> None:
    comparison = probe(operand, "x.detach()")
    found = comparison.row(row)
    assert found is not None
    told = exceptions(comparison.inputs, found.answers(0), 0, range(len(comparison.inputs)))
    assert {said for said, _ in told} == words


def test_the_gradient_of_a_softmax_reaches_x() -> None:
    comparison = probe("softmax", "log_softmax")
    assert set(by_input(comparison, "gradient_reaches_source", 0).values()) == {True}
    assert values(comparison, "gradient_of_sum")[0] == "0 everywhere (up to rounding)"


def test_the_error_of_a_sum_without_graph_is_said() -> None:
    row = probe("detach", "clone").row("gradient_of_sum")
    assert row is not None
    assert row.values == ("backward raises", "1 everywhere")
    assert row.answers(0)[0].code == "element-does-not-require-grad"


def test_an_array_is_called_an_array() -> None:
    assert "`x.numpy()` gives an ndarray on x's memory" in probe("x.numpy()", "detach").summary


def test_warnings_are_quoted_without_places_in_the_sources_of_pytorch() -> None:
    row = probe("float(x.sum())", "x.sum().item()").row("warns")
    assert row is not None
    assert row.answers(0)[0].error.startswith("UserWarning: Converting a tensor with requires_grad=True")
    assert "cpp" not in row.answers(0)[0].error


@pytest.mark.parametrize("row", ["result written", "x written, then backward", "earlier_use_then_backward"])
@pytest.mark.parametrize("options", [{}, {"leaf": True, "contiguous": False}, {"view": True}, {"requires_grad": False}])
def test_the_program_behind_a_row_does_what_the_row_says(row: str, options: dict[str, Any]) -> None:
    comparison = probe("x.data", "x.clone()", "x.unbind()", "with torch.no_grad(): r = x.detach()", **options)
    shown = programs(comparison, row).split("\n\n# ")
    assert len(shown) == len(comparison.operands)
    for program in shown:
        head, _, code = program.removeprefix("# ").partition("\n")
        answer = head.partition(": ")[2]
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(code, {})
        except RuntimeError:
            assert answer in ("error in backward", "the write raises an error")
            continue
        gradient = " ".join(printed.getvalue().split("gradient of")[1].split())
        original = "[[-1.5000, 2.0000], [ 0.0000, 2.0000], [ 0.5000, -0.5000]]"
        assert ("".join(original.split()) in "".join(gradient.split())) == (answer == "fine"), (answer, gradient)


def test_a_row_without_a_program_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match='no row "colour" with a program to show; there are "x used before'):
        programs(probe("clone", "detach"), "colour")


def test_split_and_chunk_are_compared_where_size_and_count_differ() -> None:
    assert values(probe("split", "chunk"), "returns") == ("tuple of 3", "tuple of 2")


def test_promotion_is_a_row() -> None:
    assert values(probe("x + y", "x.add_(y)"), "promoted_dtype") == ("float64", "float32")
    assert values(probe("x.sum()", "x.mean()"), "integer_dtype") == ("int64", "refused")


# --- what a second reader found, comparison by comparison -------------------------------------------------------------


def summary_line(first: str, second: str, **options: Any) -> str:
    return probe(first, second, **options).summary.splitlines()[0]


def text_of(comparison: Any, name: str, operand: int = 0) -> str:
    text: str = comparison.row(name).answers(operand)[0].text
    return text


def test_memory_that_was_never_set_is_not_called_a_wrong_gradient() -> None:
    comparison = probe("torch.empty_like(x)", "torch.empty_like(x) * 2")
    row = comparison.row("write_source_then_backward")
    assert row is not None
    assert {answer.value for operand in (0, 1) for answer in row.answers(operand).values()} == {"fine"}
    assert "Beware" not in comparison.summary


def test_a_call_that_refuses_saved_tensor_hooks_is_measured_without_them() -> None:
    comparison = probe("torch.func.grad(lambda t: t.sin().sum())(x)", "torch.func.vmap(torch.sin)(x)")
    for name in ("earlier_use_then_backward", "write_result_then_backward"):
        row = comparison.row(name)
        assert row is not None
        answers = row.answers(0).values()
        assert {answer.value for answer in answers} == {"fine"}
        assert not any("hooks" in answer.error for answer in answers)
    assert "You may write to the result before backward." in comparison.summary.splitlines()[0]


def test_a_silent_error_of_a_call_that_refuses_hooks_is_still_found() -> None:
    comparison = probe("x.data.copy_(torch.func.grad(lambda t: t.sin().sum())(x.detach()))", "clone")
    assert values(comparison, "earlier_use_then_backward") == ("silently wrong", "fine")


def test_a_hook_is_registered_and_not_entered_as_a_context() -> None:
    comparison = probe("x.register_hook(lambda g: 2 * g)", "x * 2")
    assert comparison.operands[0].kind == "code"
    assert values(comparison, "changes_source") == ("hooks", False)
    assert values(comparison, "later_gradient") == ("2 everywhere", "1 everywhere")
    assert "registers a hook on x and gives a RemovableHandle" in comparison.summary


def test_minus_zero_is_zero_and_no_rounding() -> None:
    row = probe("F.relu(x)", "x * (x > 0)").row("values")
    assert row is not None
    assert not row.differs
    assert [seen.answer.text for seen in row.evidence] == ["[[0, 2], [0, 2], [0.5, 0]]"] * 2


def test_values_between_0_and_1_do_not_hide_what_zero_and_negative_numbers_give() -> None:
    comparison = probe("sign", "x / x.abs()")
    row = comparison.row("values")
    assert row is not None
    assert row.differs
    assert text_of(comparison, "values") == (
        "1 everywhere; for x = [[-1.5, 2], [0, 2], [0.5, -0.5]]: [[-1, 1], [0, 1], [1, -1]]"
    )
    assert text_of(comparison, "values", 1).endswith("[[-1, 1], [nan, 1], [1, -1]]")


def test_a_narrower_dtype_rounds_what_it_copies() -> None:
    comparison = probe("half", "double")
    assert text_of(comparison, "values") == "those of x, rounded to float16"
    assert text_of(comparison, "values", 1) == "those of x"


def test_what_reads_the_memory_gives_other_numbers_for_a_transposed_x() -> None:
    comparison = probe("as_strided", "x[:2]")
    assert text_of(comparison, "values").endswith("; other numbers for a transposed x")
    assert "transposed" not in text_of(comparison, "values", 1)


def test_random_values_are_called_so_in_every_row_and_are_not_all_the_same() -> None:
    comparison = probe("F.dropout(x)", "F.dropout(x, training=False)")
    assert text_of(comparison, "values") == "random, such as [[-3, 4], [0, 4], [0, 0]]"
    assert text_of(comparison, "gradient_of_sum") == "random, such as [[2, 2], [0, 2], [0, 0]]"
    assert "a new tensor that depends on random numbers" in comparison.summary


def test_the_fields_of_a_named_tuple_are_named() -> None:
    comparison = probe("sort", "argsort")
    assert text_of(comparison, "returns") == "tuple of 2 (values, indices)"
    assert "gives a tuple of 2, the first a new tensor of shape (3, 2); gradient" in comparison.summary
    assert "result = result[0]" in programs(comparison, "write_result_then_backward")


def test_a_changed_shape_is_not_called_a_write_of_the_same_values() -> None:
    line = summary_line("t_", "t")
    assert line.startswith("`x.t_()` changes x.shape, x.strides and x.grad_fn and returns x itself")
    assert "unchanged for" not in line


def test_what_leaves_x_as_it_is_on_some_inputs_is_said_so() -> None:
    line = summary_line("x.requires_grad_(False)", "detach", leaf=True)
    assert "(but leaves x as it is and returns x itself for an x without grad)" in line


@pytest.mark.parametrize("name", ["scatter", "gather", "take_along_dim", "index_add", "index_copy", "unfold"])
def test_guessed_arguments_run_on_every_input(name: str) -> None:
    runs = probe(name, "clone").row("runs")
    assert runs is not None
    assert all(answer.value for answer in runs.answers(0).values())


def test_a_cast_is_asked_of_every_kind_of_float64_x() -> None:
    comparison = probe("x.float()", "clone")
    assert by_input(comparison, "trains", 0)["leaf+float64"] is False
    assert by_input(comparison, "contiguous", 0)["every_second+float64"] is True
    assert "leaf+float64" not in {each.id for each in probe("clone", "detach").inputs}


def test_a_gradient_that_was_recorded_requires_grad() -> None:
    comparison = probe("x.pow(2).sum().backward()", "x.pow(2).sum().backward(create_graph=True)")
    assert values(comparison, "fills_grad") == ("the leaf behind x", "the leaf behind x; requires grad")
    assert "fills .grad of the leaf behind x, which then requires grad, and" in comparison.summary


def test_nothing_is_said_of_values_where_the_elements_are_others() -> None:
    changed = values(probe("x.set_()", "x.t_()"), "changes_source")
    assert changed == ("shape, strides, memory, grad_fn", "shape, strides, grad_fn")


def test_a_sentence_begins_with_what_is_true_of_the_first_input() -> None:
    assert ";  (" not in probe("x.sum().backward(); x.grad", "clone").summary


def test_what_takes_one_element_says_so() -> None:
    comparison = probe("item", "tolist")
    runs = comparison.row("runs")
    assert runs is not None
    refused = exceptions(comparison.inputs, runs.answers(0), 0, range(len(comparison.inputs)))
    assert [words for words, _ in refused] == ["an x with several elements"]
    assert "It raises an error for an x with several elements." in comparison.summary.splitlines()[0]


def test_a_sentence_on_gradients_names_its_x_where_the_main_one_requires_no_grad() -> None:
    first, second = probe("x * 2", "x.clone().resize_(2, 2)").summary.splitlines()[:2]
    assert "gives a new tensor; for an x that requires grad, gradient flows back to x." in first
    assert "It raises an error for an x that requires grad." in second
