"""`%load_ext tensorlens` in a real kernel, as a notebook runs it."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CELLS = (
    "import torch\n%load_ext tensorlens",
    "x = torch.ones(3, requires_grad=True)\ny = x.exp()",
    "y.add_(1)",
    "import asyncio\nawait asyncio.sleep(0)\ny.sum().backward()",
    "%%tensorlens\nprint(x.grad)\nx * 2",
    "%tensorlens",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """The outputs of each cell of a notebook that goes on after an exception."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    folder: Path = tmp_path_factory.mktemp("notebook")
    resources = {"metadata": {"path": folder}}
    nbclient.NotebookClient(notebook, allow_errors=True, timeout=120, resources=resources).execute()
    return [cell["outputs"] for cell in notebook["cells"]]


def shown(output: Any) -> str:
    text = output.get("data", {}).get("text/plain") or output.get("text") or "\n".join(output.get("traceback", ()))
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_the_explanation_is_below_the_traceback(outputs: list[list[Any]]) -> None:
    error, explanation = outputs[3]
    assert error["output_type"] == "error"
    assert "/tensorlens/" not in shown(error), "frames of tensorlens"
    assert shown(explanation).startswith("error[saved-tensor-modified-inplace]: `y.add_(1)` overwrote `y`")
    assert " --> In [3]:1:1" in shown(explanation)
    assert "::: In [2]:2:5" in shown(explanation)
    assert "::: In [4]:3:1" in shown(explanation)


def test_the_explanation_is_also_html_with_the_page_below_it(outputs: list[list[Any]]) -> None:
    _, explanation = outputs[3]
    html = explanation["data"]["text/html"]
    text = unescape(re.sub(r"<[^>]*>", "", html.partition("</style>")[2].partition("<details>")[0]))
    assert text.strip() == shown(explanation).strip()
    assert html.count("<iframe") == 1
    assert "<details><summary>" in html.partition("<iframe")[0]
    (whole,) = outputs[5]
    assert "<details>" not in whole["data"]["text/html"]
    assert whole["data"]["text/html"].count("<iframe") == 1
    assert "error[saved-tensor-modified-inplace]" in outputs[4][2]["data"]["text/html"], "the page has all findings"


def test_cells_without_a_finding_show_what_they_show_without_the_extension(outputs: list[list[Any]]) -> None:
    assert [output["output_type"] for output in outputs[0]] == []
    assert [output["output_type"] for output in outputs[1]] == []
    assert [output["output_type"] for output in outputs[2]] == ["execute_result"]


def test_reports_are_one_output(outputs: list[list[Any]]) -> None:
    printed, result, of_cell = outputs[4]
    assert shown(printed) == "None\n"
    assert result["output_type"] == "execute_result"
    assert " 3    x * 2" in shown(of_cell)
    (whole,) = outputs[5]
    assert "error[saved-tensor-modified-inplace]" in shown(whole)
