# `make` lists what there is. Everything else sets itself up first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
PY := $(ROOT)/.venv/bin/python
export PYTHON
export KAFKA_VERSION
export PATH := $(ROOT)/.venv/bin:$(PATH)
# Airflow adds dags/ and plugins/ by itself; plugins/rehome finds the engine in include/.
export PYTHONPATH := $(ROOT):$(ROOT)/plugins
# Airflow and Spark start many processes: without bytecode each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

.PHONY: python
python:
	@bin/setup python

.PHONY: setup
setup: ## prepare this checkout: Java, Python packages, Kafka's jars; KAFKA_VERSION=4.3.1 takes another one
	@bin/setup

LOCK := uv pip compile -q --universal --python-version 3.11 --no-header --generate-hashes

.PHONY: lock
lock: setup ## compile requirements.txt and requirements-dev.txt into their locks, with hashes
	$(LOCK) requirements.txt -o requirements.lock
	$(LOCK) requirements-dev.txt -o requirements-dev.lock

# What runs by itself: watching, windows, fleets, the clusters file, alerts.
ACTING := include/rehome/watching include/rehome/alerts include/rehome/clusters include/rehome/execution/access/open_windows.py \
	plugins/rehome/fleet plugins/rehome/timetables dags

.PHONY: acting-lines
acting-lines: ## count the lines of what runs by itself
	@find $(ACTING) -name "*.py" -exec cat {} + | wc -l

.PHONY: lines
lines: python ## count the lines of the core and of each extra; SINCE=COMMIT compares them with those of then
	@$(PY) -m benchmarks.code.house $(if $(SINCE),--since $(SINCE))

.PHONY: wheel
wheel: python ## build the package, dist/rehome-….whl
	@.venv/bin/uv build -q --no-build-isolation --wheel -o dist .

.PHONY: dist
dist: python ## build what a release has: the source archive, and the wheel from it
	@.venv/bin/uv build -q --no-build-isolation -o dist .

.PHONY: sbom
sbom: python ## write the SBOM (CycloneDX) and the list of licences of what the lock has into dist/
	@PATH=$(ROOT)/.venv/bin:$$PATH $(PY) -m local.bill_of_materials

.PHONY: demo
demo: setup ## watch a broker being drained on a real cluster by a real Airflow
	@$(PY) -m local.demo $(ARGS)

.PHONY: up
up: setup ## keep the demo's cluster and Airflow running to look around
	@$(PY) -m local.stack up $(ARGS)

.PHONY: down
down: setup ## end what `make up` started
	@$(PY) -m local.stack down

# Four processes for two cores, with a cluster each: tests wait for brokers longer than they and
# their brokers compute. Files stay whole and in their order, in which the long ones come early.
PROCESSES := 4
SIDE_BY_SIDE := -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

.PHONY: browser
browser: ## prepare this checkout, with Chromium for the tests of the page where this machine may install it
	@bin/setup browser

.PHONY: test-monitoring
test-monitoring: setup ## a drain on real brokers as a real Prometheus sees it: dashboard, alert rules, OpenTelemetry
	@bin/setup monitoring
	timeout -k 30 5400 $(PY) -m pytest tests/metrics tests/dags/progress/test_prometheus.py -m "" $(ARGS)

.PHONY: test
ifdef ARGS
test: python
	timeout -k 30 14400 $(PY) -m pytest $(SIDE_BY_SIDE) --skip-missing $(ARGS)
else
test: browser ## every test, on real brokers too; ARGS="-k drain" picks some, and skips what lacks Java or Chromium
	timeout -k 30 14400 $(PY) -m pytest $(SIDE_BY_SIDE)
endif

FAST := not brokers and not spark and not browser and not airflow and not postgresql and not slow and not long and not simulated

# In one process: each more would import all that tests import, for 14 s of processor.
.PHONY: test-fast
test-fast: python ## the tests that need no Java, Chromium or Airflow's database: a minute or two
	$(PY) -m pytest -m "$(FAST)" $(ARGS)

.PHONY: watch
watch: python ## run the fast tests of each file that you save; ARGS="-x" goes to pytest
	$(PY) -m watchfiles --filter python --args '-m "$(FAST)" --durations=0 $(ARGS)' \
		tests.architecture.rerun.run dags include plugins spark_jobs tests world

.PHONY: page
page: python ## serve the page alone, on plans made up for it, while you work on its looks: no Airflow, no brokers
	$(PY) -m tests.ui.alone.page_alone $(ARGS)

# Beside the usual version of Kafka: the one that the model of Kafka is held to as well.
OTHER_KAFKA := 4.3.1

.PHONY: test-thorough
test-thorough: browser ## every test with every random case, those that take minutes too: an hour and more
	@bin/setup monitoring || echo "tests that need Prometheus are skipped"
	@bin/setup redis || echo "tests that need Redis are skipped"
	REHOME_EXAMPLES=all $(PY) -m pytest $(SIDE_BY_SIDE) -m "" $(ARGS)
	KAFKA_VERSION=$(OTHER_KAFKA) bin/setup
	KAFKA_VERSION=$(OTHER_KAFKA) $(PY) -m pytest tests/world/kafka/against_brokers -m ""

# Cases wait for brokers to die and to return more than they compute: two clusters side by side.
FAULTS := .state/faults.xml

.PHONY: test-faults
test-faults: setup ## every fault at every moment on real brokers; writes docs/reliability.md
	@mkdir -p $(dir $(FAULTS))
	timeout -k 30 7200 $(PY) -m pytest tests/faults/test_matrix.py -m "" -n 2 --dist worksteal \
		-o junit_family=xunit1 --junitxml=$(FAULTS) $(ARGS); \
	$(PY) -m tests.faults.table $(FAULTS)

.PHONY: test-constraints
test-constraints: python ## see that the wheel fits the constraints of the lowest, the newest and another version of Airflow; asks the package index
	$(PY) -m pytest -q tests/e2e/installed/test_wheel_resolves.py -m "" -k "constraints and 3.11" $(ARGS)

# Each version of Airflow in an environment of its own, below .state/airflows: 1.3 GB each.
.PHONY: test-airflows
test-airflows: setup ## the wheel in the lowest, the newest and another version of Airflow, on several machines, and with Spark elsewhere; writes where it was tried
	@bin/setup redis || echo "tests that need Redis are skipped"
	@bin/setup keycloak || echo "the test that needs Keycloak is skipped"
	REHOME_RECORD=$(ROOT)/handbook/tried.json timeout -k 30 14400 $(PY) -m pytest tests/e2e/installed tests/e2e/elsewhere tests/spark/elsewhere -m "" $(ARGS)
	@$(PY) -m handbook.reference

# Each version's jars lie beside the usual ones: 55 MB, and as much again for the archive of classes.
VERSIONS := 3.7.2 3.9.2 4.0.2 4.1.2 4.2.1 4.3.1 4.4.0

.PHONY: test-versions
test-versions: setup ## the marked part of the tests on each version of Kafka; VERSIONS="3.9.2 4.4.0" picks some; writes docs/reference/kafka-versions.md
	@failed=; for version in $(VERSIONS); do \
		export KAFKA_VERSION=$$version; bin/setup && \
		REHOME_KAFKA_VERSIONS=$(ROOT)/handbook/kafka_versions.json timeout -k 30 1200 \
			$(PY) -m pytest -q --timeout 240 -m versions $(ARGS) || failed="$$failed $$version"; \
	done; $(PY) -m handbook.reference; [ -z "$$failed" ] || { echo "fails on Kafka$$failed"; exit 1; }

# What `make test` has of tests on real brokers, a folder at a time: a run that ends early keeps the
# files whose tests have all ended.
BROKER_TESTS := brokers and not long and not simulated
FOLDERS := $(filter-out %__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

.PHONY: test-brokers
test-brokers: VERSIONS := 3.9.2 4.4.0
test-brokers: setup ## every test on real brokers, on Kafka 3.9.2 and 4.4.0; VERSIONS="4.0.2" takes others, FOLDERS="tests/dags" some of the tests; writes docs/reference/kafka-versions.md
	@failed=; for version in $(VERSIONS); do \
		export KAFKA_VERSION=$$version; bin/setup; \
		for folder in $(FOLDERS); do \
			REHOME_KAFKA_BROKERS=$(ROOT)/handbook/kafka_brokers.json timeout -k 30 7200 \
				$(PY) -m pytest -q -m "$(BROKER_TESTS)" $$folder $(ARGS); \
			case $$? in 0 | 5) ;; *) failed="$$failed $$version:$$folder" ;; esac; \
		done; \
	done; $(PY) -m handbook.reference; [ -z "$$failed" ] || { echo "fails on Kafka$$failed"; exit 1; }

.PHONY: bench-day
bench-day: setup ## one day of a watched cluster on real brokers, with all that goes wrong; writes docs/on-call.md
	timeout -k 30 5400 $(PY) -m pytest tests/dags/day/test_day.py -m "" $(ARGS)
	$(PY) -m tests.dags.day.table

MINUTES := 60

.PHONY: soak
soak: setup ## an hour of random plans and faults in a clean Airflow that has the wheel; MINUTES=6 is a trial, ARGS="--seed 2"; writes docs/reliability.md
	@$(PY) -m tests.e2e.soak.run --minutes $(MINUTES) $(ARGS)

SEEDS := 1000

.PHONY: simulate
simulate: setup ## the real code through bad luck in a simulated world; SEEDS=200, ARGS="--seed 73"; SEEDS=20000 ARGS=--commit writes the committed result
	@$(PY) -m world.simulate $(SEEDS) $(ARGS)

.PHONY: bench-snapshot
bench-snapshot: setup ## measure how long a snapshot of 20,000 replicas takes; ARGS="--runs 3"
	@$(PY) -m benchmarks.snapshots.snapshot $(ARGS)

.PHONY: bench-plan
bench-plan: setup ## measure plans of up to ten million replicas; ARGS="--replicas 100000"
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.plan $(ARGS)

.PHONY: bench-actions
bench-actions: setup ## measure how long every action takes to plan a million replicas
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.every_action $(ARGS)

.PHONY: bench-people
bench-people: setup ## measure plans of 1 to 60 brokers against the best plans; ARGS=--exact
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.people.bench $(ARGS)

.PHONY: bench-slow
bench-slow: setup ## measure how long plans of up to 10,000 replicas take, on 100 random clusters
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.people.slow_plans $(ARGS)

.PHONY: bench-topics
bench-topics: setup ## measure what keeping topics spread costs, in time and bytes
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.topics $(ARGS)

.PHONY: bench-goals
bench-goals: setup ## measure Cruise Control's goals before and after plans
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.goals $(ARGS)

.PHONY: bench-ablation
bench-ablation: setup ## measure what each part of the planner and of the ETA brings, and costs; ARGS=--numbers
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.ablation $(ARGS)

.PHONY: bench-limits
bench-limits: setup ## measure what caps and broker sets cost, in time and bytes
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.limits $(ARGS)

.PHONY: bench-load
bench-load: setup ## measure the roll-up of a week of 100,000 partitions, and its load model
	@$(PY) -m benchmarks.snapshots.load $(ARGS)

.PHONY: bench-growth
bench-growth: setup ## measure how much data a day leaves at 100,000 partitions
	@$(PY) -m benchmarks.snapshots.growth $(ARGS)

.PHONY: bench-gates
bench-gates: setup ## measure both gates on a million replicas
	@$(PY) -m benchmarks.snapshots.gates $(ARGS)

.PHONY: bench-watch
bench-watch: setup ## judge a snapshot of a million replicas by every watch rule
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.snapshots.watch $(ARGS)

.PHONY: bench-simulate
bench-simulate: setup ## simulate 100,000 moves on 1,000 brokers: time over the bound, time to decide
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.execution.simulate $(ARGS)

.PHONY: bench-execute
bench-execute: setup ## move 1.2 GB by Rehome and by other ways: time over the bound, producers' p99; ARGS=--long
	@$(PY) -m benchmarks.execution.execute $(ARGS)

.PHONY: bench-small
bench-small: setup ## move 5,000 empty partitions by Rehome and by Kafka's own tool
	@$(PY) -m benchmarks.execution.small_partitions $(ARGS)

.PHONY: bench-predict
bench-predict: setup ## judge predicted times and ETAs on real brokers under a real Airflow
	@$(PY) -m benchmarks.execution.predict $(ARGS)

.PHONY: bench-poll
bench-poll: setup ## measure a poll of a plan of 100,000 moves, 1,000 of them in flight
	@$(PY) -m benchmarks.execution.poll $(ARGS)

.PHONY: bench-page
bench-page: setup ## measure the page of a plan of 50,000 moves, with one viewer and with ten
	@$(PY) -m benchmarks.execution.page $(ARGS)

.PHONY: bench-http
bench-http: setup ## measure Airflow's API under 100 hostile requests: p99 of others, and its event loop
	@$(PY) -m benchmarks.api_server $(ARGS)

.PHONY: bench-governor
bench-governor: setup ## measure what brokers deliver of a throttle, with and without the governor
	@$(PY) -m benchmarks.execution.governor $(ARGS)

.PHONY: bench-fleet
bench-fleet: setup ## plan 100 clusters in one application, and 20 of them one by one too
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.fleet $(ARGS)

.PHONY: bench-peers
bench-peers: setup ## give the same clusters to kafka-tools and kafka-utils
	@OMP_NUM_THREADS=1 $(PY) -m benchmarks.planning.peers $(ARGS)

.PHONY: bench-walks
bench-walks: setup ## follow a drain through the code: rooms, stays and returns of each step, lines of the files it enters
	@$(PY) -m benchmarks.code.walks $(ARGS)

.PHONY: bench-stale
bench-stale: python ## name the committed results whose code has changed since they were measured
	@$(PY) -m benchmarks.code.stale

.PHONY: docs
docs: setup ## build the handbook into .state/docs; a broken link or anchor ends it
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

.PHONY: docs-reference
docs-reference: setup ## write docs/reference from the parameters, settings and states in the code
	@$(PY) -m handbook.reference

SHOTS := $(ROOT)/.state/screenshots

.PHONY: screenshots
screenshots: browser ## take the handbook's pictures again, from the browser tests
	@rm -rf $(SHOTS) && mkdir -p $(SHOTS)
	REHOME_SCREENSHOTS=$(SHOTS) timeout -k 30 5400 $(PY) -m pytest tests/e2e/test_page.py \
		tests/ui/routes/test_planning.py -m "" -k "rolled_back or chosen_in_a_browser"
	$(PY) -m handbook.screenshots $(SHOTS)

.PHONY: lint
lint: python ## ruff, mypy, sentences, and the links of the handbook
	ruff check .
	ruff format --check .
	mypy
	python -m handbook.sentences
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

.PHONY: format
format: python ## let ruff format the code
	ruff format .
	ruff check --fix .

.PHONY: clean
clean: ## end and remove everything that set-up and runs made
	@[ ! -x $(PY) ] || $(PY) -m local.stack down
	rm -rf .venv .cache .state .pytest_cache .ruff_cache .mypy_cache .hypothesis
