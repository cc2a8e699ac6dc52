# Everything a newcomer needs: `make demo` and `make test`. Both set up what they use.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Bytecode is kept, whatever the shell says: every process that a test starts would compile all of ours again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo vlm say-demo test long unit lint format docs setup mineflayer xvfb chromium clean help

help:           ## say what there is
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY) ## make .venv and install into it

# uv installs ten times as fast. Of pip's settings it is told the folders of wheels only; where that is not
# enough, pip installs.
install = $(BIN)/uv pip install --python $(BIN)/python -c constraints.txt $(1) || \
  { echo "uv could not install; pip does it, in about 3 minutes ..."; \
    $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(1); }

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Gamut needs Python 3.11, 3.12 or 3.13, and {sys.executable} is {v[0]}.{v[1]}; say make PYTHON=/path/to/python3.11")'
	@echo "Setting up $(VENV): 1 to 2 minutes with uv, 4 with pip, longer where the network is slow."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing uv (a few seconds) ..."
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@# Torch first and exactly: a looser range pulls gigabytes that a machine without a GPU cannot use.
	@echo "Installing PyTorch (the largest download) ..."
	@$(uv_finds); $(say_cuda); $(call install,torch==2.13.0)
	@echo "Installing Gamut and its other packages ..."
	@$(uv_finds); $(call install,-e '.[dev]')
	@echo "Compiling blockworld for this machine (about a minute, once) ..."
	@$(BIN)/python -m bridges.blockworld.warm
	@touch $@

# Without folders of its own uv takes the build of PyTorch that fits the machine, without CUDA if it has no GPU.
uv_finds = wheels=$$($(BIN)/python -m pip config get global.find-links 2>/dev/null || echo "$$PIP_FIND_LINKS"); \
  if [ -n "$$wheels" ]; then export UV_FIND_LINKS="$$wheels"; else export UV_TORCH_BACKEND=auto; fi

# Folders of wheels may have no PyTorch for this Python; then the build that fits is looked for elsewhere. One with
# CUDA is named before it is fetched.
torch_plan = $(BIN)/uv pip install --dry-run --python $(BIN)/python -c constraints.txt torch==2.13.0 2>&1
say_cuda = plan=$$($(torch_plan)); case "$$plan" in *nvidia-cublas*) \
  if other=$$(UV_TORCH_BACKEND=auto UV_HTTP_RETRIES=1 $(torch_plan)); then export UV_TORCH_BACKEND=auto; plan=$$other; fi;; esac; \
  case "$$plan" in *nvidia-cublas*) \
  echo "PyTorch comes with CUDA for this Python and machine: about 3 GB are downloaded. Ctrl-C stops it; Python 3.11 may need less.";; esac

demo: say-demo $(READY) ## a generalization sweep: twelve short trainings, their report and picture in runs/hunt_sheep_demo/
	$(BIN)/gamut sweep --config configs/sweeps/hunt_sheep_demo.yaml --resume

say-demo:
	@test -f $(READY) || echo "make demo: first the set-up, 1 to 4 minutes, once;"
	@echo "make demo: about 4 minutes of training on two cores. Results: runs/hunt_sheep_demo/"

MINEFLAYER := $(VENV)/.mineflayer

mineflayer: $(MINEFLAYER) ## what the Minecraft bridge needs: Node, and half a gigabyte of its packages
	@$(BIN)/python -m bridges.mineflayer.setup

# Lists of extras are variables: a comma within $(call ...) would end its argument.
EXTRAS := mineflayer,pettingzoo,starbench,vlm
VLM_EXTRAS := dev,vlm
VLM := $(VENV)/.vlm

$(VLM): $(READY)
	@$(uv_finds); $(call install,-e '.[$(VLM_EXTRAS)]')
	@touch $@

vlm: $(VLM)     ## a small vision-language model learns from demonstrations, then by playing; runs/vlm_demo/, 15 minutes
	$(BIN)/gamut collect --config configs/vlm/collect_babyai.yaml --resume --set output=runs/vlm_demo/demonstrations
	$(BIN)/gamut train --config configs/vlm/sft_minigrid.yaml --resume --set output=runs/vlm_demo/sft \
	  dataset=runs/vlm_demo/demonstrations learners.threads=0
	$(BIN)/gamut train --config configs/vlm/grpo_minigrid.yaml --resume --set output=runs/vlm_demo/grpo \
	  policy.local.model=runs/vlm_demo/sft updates=10 learners.threads=0
	$(BIN)/gamut evaluate --config configs/vlm/evaluate_minigrid.yaml --resume --set output=runs/vlm_demo/evaluation \
	  players.sft.path=runs/vlm_demo/sft players.grpo.path=runs/vlm_demo/grpo

$(MINEFLAYER): $(READY)
	@$(uv_finds); $(call install,-e '.[$(EXTRAS)]')
	@touch $@

test: xvfb chromium mineflayer ## all tests, lint among them
	@# Once, before the workers of pytest ask for the same; the sources may have changed since set-up.
	$(BIN)/python -m bridges.blockworld.warm
	@# After a clone git reads all files whenever a run asks for its commit, until the index is refreshed.
	@git update-index -q --refresh 2>/dev/null || true
	@# Five workers on two cores, since the tests of Ray often wait, and each collects all tests; a file at a
	@# time, since its tests share what is costly to make; in the order of the folders, so that no long file
	@# is the last.
	$(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder -m "not long"

INTEROP := $(VENV)/.interop
INTEROP_EXTRAS := inspect,ray-serve,trl
VERIFIERS := $(VENV)/verifiers
packages_of = $$($(1) -c "import sysconfig; print(sysconfig.get_path('purelib'))")

# verifiers pins another mcp and openai than ours, so it has an environment of its own, which sees the rest of this one.
$(INTEROP): $(MINEFLAYER)
	@$(uv_finds); $(call install,-e '.[$(INTEROP_EXTRAS)]' smolagents)
	@$(uv_finds); grep -vE '^(mcp|openai)' constraints.txt > $(VENV)/verifiers.txt; \
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VERIFIERS) && \
	$(BIN)/uv pip install --python $(VERIFIERS)/bin/python -c $(VENV)/verifiers.txt verifiers==0.4.0 && \
	$(BIN)/uv pip install --python $(VERIFIERS)/bin/python --no-deps -e . && \
	echo $(call packages_of,$(abspath $(BIN))/python) > $(call packages_of,$(VERIFIERS)/bin/python)/zz_gamut.pth
	@touch $@

long: $(INTEROP) ## the tests that take too long for every change
	$(BIN)/python -m pytest -n 2 --dist loadfile -m long

unit: mineflayer ## the tests that need no Ray, in seconds
	$(BIN)/python -m pytest -n 2 tests/unit -m 'not slow and not ray and not process and not heavy and not long'

xvfb:           ## an X server without a screen, for the tests of the window
	@command -v Xvfb >/dev/null && command -v xdotool >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ]; then root=; else root="sudo -n"; fi; \
	command -v apt-get >/dev/null && $$root apt-get update -qq >/dev/null 2>&1; \
	$$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends xvfb xdotool >/dev/null 2>&1 \
	  || echo "The tests of the window will skip: install the packages xvfb and xdotool (Debian: sudo apt-get install xvfb xdotool)."

chromium:       ## a browser without a window, for the tests of pages
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ]; then root=; else root="sudo -n"; fi; \
	command -v apt-get >/dev/null && $$root apt-get update -qq >/dev/null 2>&1; \
	$$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1 \
	  || echo "The tests of pages will skip: install the package chromium (Debian: sudo apt-get install chromium)."

lint: $(READY)  ## ruff, mypy strict, retired words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/check_words.py

format: $(READY) ## let ruff tidy up
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the documentation as a site, in build/docs; warnings are errors
	$(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

clean:          ## remove what was installed and built, not what was run
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
