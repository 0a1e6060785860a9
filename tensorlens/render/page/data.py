"""Makes the data of a report's page: plain JSON, in which every name, sentence and state comes from the analysis.

The page draws this data and finds nothing out. Its parts:

- `head`: the parts of the headline, the sentence that says how the run ended, its tone, and remarks.
- `start`: the moment at which the page opens, and the tensor that is selected there.
- `strings`: every text that a column refers to; texts are safe to show (`safe_text.safe`).
- `sources`: the files, each with blocks of lines; `places`: spans in them. Columns count shown characters.
- `moments`: what happened, in order (`MomentData`). Everything else refers to moments by position; the last is the end.
- `runs`: the runs of lines, each with its first and last moment and what it did: [name, text, storage, tone, *more].
- `uses`: the tensors that a moment reads or makes, by the names that its line has for them.
- `changes`: how states, versions (by version counter) and gradients change: differences, never snapshots.
- `tensors`, `memory` (storages, bars, writes, saves), `graph` (nodes, edges, cuts, ends, freed): what is drawn.
- `norms`: the norm of each parameter's gradients, the first and the last, of a run with `--training`.
- `findings`, `tables`: the report's own, with places, moments and tensors to follow.

Tables of many records are written by columns (`strings.columns`); -1 stands for None there.
"""

from __future__ import annotations

from typing import Any

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.moments.state_changes import touched
from tensorlens.analysis.sampled_run import sampling_text
from tensorlens.analysis.trace_index import index_of
from tensorlens.diagnostics.shared.main_finding import main_finding
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions
from tensorlens.render.page.finding_data import finding_data, needed_events
from tensorlens.render.page.graph_data import graph_data
from tensorlens.render.page.memory_data import memory_data, tensor_data
from tensorlens.render.page.moment_data import KINDS, MomentData
from tensorlens.render.page.source_data import Sources
from tensorlens.render.page.strings import NONE, Strings
from tensorlens.render.page.table_data import gradient_norms, table_data
from tensorlens.render.report import headline
from tensorlens.render.report.claim_texts import failed_claims
from tensorlens.render.report.clean_run import no_problem_found
from tensorlens.render.report.headline import count
from tensorlens.render.report.verdict import ignored_findings, verdict
from tensorlens.render.safe_text import safe

FORMAT, VERSION = "tensorlens.page", 1


def page_data(report: Report, options: RenderOptions) -> dict[str, Any]:
    """Returns everything that the page of a report shows."""
    trace = report.trace
    facts, strings, sources = index_of(trace), Strings(), Sources(trace)
    moments = Moments(trace, needed_events(report))
    about = MomentData(report, facts, moments)
    runs, run_of = about.runs(strings, sources)
    uses = about.uses(strings)
    findings = finding_data(report, moments, sources)
    tables = table_data(report, facts, options)
    shown = {*uses["tensor"], *(state.tensor for state in trace.end.states)}
    shown |= {number for finding in findings for number in finding["tensors"]}
    shown |= {number for table in tables for row in table["rows"] for number in row["tensors"]}
    graph = graph_data(facts, moments, strings, sources)
    return {
        "format": FORMAT,
        "version": VERSION,
        "head": _head(report, options, moments),
        "start": _start(findings, moments, set(graph["cuts"]["moment"])),
        "kinds": KINDS,
        "moments": about.moments(strings, sources, run_of),
        "runs": runs,
        "uses": uses,
        "changes": about.changes(strings),
        "tensors": tensor_data(facts, strings, moments, shown),
        "memory": memory_data(facts, strings, moments, shown),
        "graph": graph,
        "norms": gradient_norms(report, facts),
        "findings": findings,
        "tables": tables,
        "sources": sources.files(),
        "places": sources.places(),
        "strings": strings.texts,
    }


def _head(report: Report, options: RenderOptions, moments: Moments) -> dict[str, Any]:
    trace, main = report.trace, main_finding(report)
    title, paragraphs = headline.docstring(trace) if options.lesson else ("", [])
    ended = verdict(report)
    is_well = main is None and headline.final_failure(trace) is None and headline.is_well(trace)
    remarks = [sampling_text(trace), headline.shared_memory(trace), headline.reference(trace), headline.eager(trace)]
    remarks.append(ignored_findings(report))
    if moments.left_out:
        left_out = count(moments.left_out, "moment")
        remarks.append(
            f"the page leaves out {left_out} in the middle of this long run, of those that the trace has kept"
        )
    return {
        "run": [safe(part) for part in headline.run_parts(trace)],
        "sentence": safe(no_problem_found(report) if is_well else ended),
        "ended": safe(ended) if is_well else "",
        "tone": main.severity if main is not None else "good" if is_well else "plain",
        "remarks": [safe(each) for each in (*remarks, failed_claims(trace.claims)) if each],
        "title": safe(title),
        "paragraphs": [safe(each) for each in paragraphs],
    }


def _start(findings: list[dict[str, Any]], moments: Moments, cuts: set[int]) -> dict[str, int]:
    """Returns where the page opens: at the first label of the main finding that has a moment, else at the end.

    It selects a tensor of the finding: where a path is cut, a parameter, whose path is shown then; else one that this
    moment changes, else the first that it uses, else any.
    """
    moment, tensors = len(moments.items) - 1, list[int]()
    for finding in findings[:1]:
        moment = next((label["moment"] for label in finding["labels"] if label["moment"] >= 0), moment)
        tensors = finding["tensors"]
    known = moments.trace.tensors
    parameters = [tensor for tensor in tensors if moment in cuts and known[tensor].type.endswith("Parameter")]
    used = [(not made, tensor) for tensor, _, made in touched(moments, moment) if tensor in tensors]
    chosen = parameters or [tensor for _, tensor in sorted(used)] or tensors
    return {"moment": moment, "tensor": next(iter(chosen), NONE)}
