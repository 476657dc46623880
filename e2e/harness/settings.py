"""What `e2e/run` was asked for. It comes by the environment, so that the scenarios also run under plain `python3 -m unittest`."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = Path(os.environ.get("SUPERCARGO_CACHE") or Path.home() / ".cache" / "supercargo")

# The scheduler under test: `supercargo` or `kube-scheduler`.
SCHEDULER = os.environ.get("E2E_SCHEDULER") or "supercargo"
# The folder that e2e/setup fills.
BINARIES = Path(os.environ.get("E2E_BIN") or CACHE / "e2e")
# Our binary.
SUPERCARGO = Path(
    os.environ.get("SUPERCARGO") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release" / "supercargo"
)
# Our binary with the feature `test-faults`, if there is one.
FAULTY = Path(os.environ["SUPERCARGO_FAULTS"]) if os.environ.get("SUPERCARGO_FAULTS") else None
# The folder with the programs of examples/, which `cargo build` in that folder makes.
EXAMPLES = Path(
    os.environ.get("SUPERCARGO_EXAMPLES") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
)
# Whether the folders with logs and data stay.
KEEP = bool(os.environ.get("E2E_KEEP"))


def binary(name):
    return BINARIES / name
