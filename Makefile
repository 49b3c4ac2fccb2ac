# make demo: see it work.  make test: prove it works.  Both set themselves up.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# Modules are compiled when they are first imported: most of those that are installed never are.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
SPARK := .spark/.ready
# Tests start many processes: compiled modules are kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test soak spark check fuzz bench docs lock clean

setup: $(STAMP)

$(STAMP): constraints.txt tests/peers.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes -r constraints.txt
	$(INSTALL) --no-deps --require-hashes -r tests/peers.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	$(BIN)/voile demo -o demo-output

test: setup
	$(BIN)/pytest -n auto --dist worksteal

# The full counts of every proof of which `make test` runs a sample.
soak: setup
	VOILE_SOAK=1 $(BIN)/pytest -n auto --dist worksteal
	$(BIN)/python tools/fuzz.py --inputs 100000 --seed 1
	$(BIN)/python tools/fuzz_releases.py --inputs 100000 --seed 1

fuzz: setup
	$(BIN)/python tools/fuzz.py --inputs 100000 --seed 1
	$(BIN)/python tools/fuzz_releases.py --inputs 100000 --seed 1

# Apache Spark for tests/spark: half a gigabyte, which only those tests need, and which needs Java.
spark:
	@if [ -n "$$JAVA_HOME" ] || command -v java >/dev/null; \
	then $(MAKE) --no-print-directory $(SPARK); \
	else echo "no Java: the tests of Apache Spark will skip"; fi

$(SPARK): tests/spark.txt | $(STAMP)
	rm -rf .spark
	mkdir -p .spark/download .spark/python
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --no-binary pyspark \
	  --require-hashes -d .spark/download -r tests/spark.txt
	cd .spark/download && tar -xzf pyspark-*.tar.gz --no-same-owner && cd pyspark-*/ && \
	  mv deps/bin deps/sbin deps/jars ../.. && mv lib ../../python/lib
	rm -rf .spark/download
	touch $(SPARK)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The libraries that we are measured beside come with the first run.
bench: setup
	$(INSTALL) --no-deps --require-hashes -r bench/peers.txt
	$(BIN)/python -m bench

docs: setup
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Refresh the pins. The file records names, versions and hashes, and no address.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --extra plots --extra studio --extra postgres --extra dev --extra docs --extra bench \
	  pyproject.toml -o constraints.txt

clean:
	rm -rf .venv .spark demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache
