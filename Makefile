# make demo: set up and show the lens at work. make test: set up and run the tests. make check: lint, types, layers.
# PYTHON names the interpreter to build the environment with; all that is installed goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
C_SOURCES := $(wildcard tensorlens/*/*.c tensorlens/*/*/*.c tensorlens/*/*_c/*.h tensorlens/*/*/*_c/*.h)
PYTHONS ?= 3.11 3.12 3.13 3.14

.PHONY: demo test unchanged fuzz trust check pages index catalogue advice course how picture notebook hardest versions bench wheel wheels clean

demo: $(READY)
	$(BIN)/tensorlens run detach
	@echo
	@echo "And a training script that fails: tensorlens explain docs/examples/gan_step.py"
	@echo
	$(BIN)/tensorlens explain docs/examples/gan_step.py; test $$? -eq 1  # 1: the script fails, as it is meant to

test: $(READY)  # a process runs tests that are side by side: it makes the fixtures of their module once
	$(BIN)/python -m pytest -n 2 --dist worksteal

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

pages: $(READY)  # the website, in build/site: lessons with their reports, the manual, the guides, the reference
	PYTHONPATH=tests $(BIN)/python -m tools.website

index: $(READY)  # the index of the manual's pages: tensorlens/records/error_index.json
	$(BIN)/python -m tools.error_index

catalogue: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tools.catalogue_page

advice: $(READY)  # docs/advice.md: the first help of each report, followed and judged by gradients
	PYTHONPATH=tests $(BIN)/python -m tools.advice_page

course: $(READY)  # docs/course.md: the transcripts
	PYTHONPATH=tests $(BIN)/python -m tools.course_page

bench: $(READY)  # docs/benchmarks.md: twenty minutes; the longer parts: python -m benchmarks --help
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	$(BIN)/python -m benchmarks

how: $(READY)  # docs/how-it-works.md
	PYTHONPATH=tests $(BIN)/python -m tools.how_it_works_page

picture: $(READY)  # docs/report.svg, docs/page.png, and the output in the README
	$(BIN)/python -m tools.report_picture
	$(BIN)/python -m tools.page_picture
	$(BIN)/python -m tools.readme_output

notebook: $(READY)  # docs/notebook.png: a notebook in JupyterLab
	$(BIN)/python -m pip install --quiet jupyterlab
	$(BIN)/python -m tools.notebook_picture

hardest: $(READY)
	PYTHONPATH=tests $(BIN)/python -m tools.hardest_page

versions: $(READY)  # docs/versions.md: an environment for each release of PyTorch, one at a time: hours, and 6 GB each
	$(BIN)/python -m tools.versions_page

wheels: $(READY)  # in dist/: a wheel for each supported Python, and one without compiled code for all others
	$(BIN)/python -m pip install --quiet -c constraints.txt uv
	rm -rf dist
	for version in $(PYTHONS); do $(BIN)/uv build --quiet --wheel --python $$version || exit 1; done
	TENSORLENS_PURE_PYTHON=1 $(BIN)/uv build --quiet --wheel --python $(BIN)/python
	ls dist

wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) dist build

$(READY): pyproject.toml constraints.txt hatch_build.py $(C_SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@
