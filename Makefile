# make demo: set up and show the lens at work. make test: set up and run the tests. make check: lint, types, layers.
# PYTHON names the interpreter to build the environment with; all that is installed goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test unchanged fuzz trust check pages catalogue advice course how picture hardest versions bench wheel clean

demo: $(READY)
	$(BIN)/tensorlens run detach
	@echo
	@echo "And a training script that fails: tensorlens explain docs/examples/gan_step.py"
	@echo
	$(BIN)/tensorlens explain docs/examples/gan_step.py; test $$? -eq 1  # 1: the script fails, as it is meant to

test: $(READY)
	$(BIN)/python -m pytest -n 2

unchanged: $(READY)  # all of PyTorch's sample inputs, every program: an hour; `make trust` writes the counts down
	rm -f tests/unchanged/counts.txt
	UNCHANGED_COUNTS=tests/unchanged/counts.txt $(BIN)/python -m pytest -n 2 -m 'complete or not complete' tests/tracer/test_unchanged.py tests/tracer/test_fast_path.py tests/tracer/test_compiled_fast_path.py tests/diagnostics/test_programs.py

fuzz: $(READY)  # thousands of programs, trace files, journals and texts, and every way to go wrong
	$(BIN)/python -m pytest -n 2 -m complete tests/test_fuzzing.py tests/records/test_forged_files.py tests/tracer/test_guard.py tests/runner/test_survival.py tests/runner/test_endings.py tests/runner/test_live.py tests/runner/test_runner.py tests/cli/test_cli.py

trust: $(READY)  # docs/trust.md: what was tried, with the outcome
	PYTHONPATH=tests:tests/records:tests/runner:tests/tracer $(BIN)/python -m tools.trust_page

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.error_index --check

pages: $(READY)  # the index of the manual's pages: tensorlens/records/error_index.json
	$(BIN)/python -m tools.error_index

catalogue: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tools.catalogue_page

advice: $(READY)  # docs/advice.md: the first help of each report, followed and judged by gradients
	PYTHONPATH=tests $(BIN)/python -m tools.advice_page

course: $(READY)  # docs/course.md: the transcripts
	PYTHONPATH=tests $(BIN)/python -m tools.course_page

bench: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python -m benchmarks

how: $(READY)  # docs/how-it-works.md
	PYTHONPATH=tests $(BIN)/python -m tools.how_it_works_page

picture: $(READY)  # docs/report.svg, and the output in the README
	$(BIN)/python -m tools.report_picture
	$(BIN)/python -m tools.readme_output

hardest: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tools.hardest_page

versions: $(READY)  # docs/versions.md: an environment for each release of PyTorch, one at a time: hours, and 6 GB each
	$(BIN)/python -m tools.versions_page

wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) dist build

$(READY): pyproject.toml constraints.txt hatch_build.py tensorlens/tracer/recording/_fast_path.c tensorlens/journal/_compact_calls.c
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@
