"""``make fidelity``: one matrix on a GPU and on the stub, and every variant on which they disagree.

``python -m tests.fidelity [MATRIX] [--keep]``; ``--keep`` writes the compact result, with the machine's facts, into
``experiments/reference/``. Exit code 0: they agree; 1: they do not; 2: there is no GPU to compare with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from harness.model import Record
from harness.store.journal import read_records
from harness.store.layout import Store
from tests.fidelity.compare import COMPARED, Fidelity, compare

HARNESS = Path(sys.executable).with_name("harness")
REFERENCE = Path(__file__).parents[2] / "experiments" / "reference"


def main() -> int:
    """Run the matrix twice and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("matrix", nargs="?", default="full")
    parser.add_argument("--keep", action="store_true", help="keep the compact result in experiments/reference/")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records: dict[str, tuple[Record, ...]] = {}
        for device in ("cuda", "stub"):
            store = Path(folder) / device
            command = [
                HARNESS,
                "--store",
                store,
                "run",
                "matrix",
                arguments.matrix,
                "--device",
                device,
                "--no-tracking",
            ]
            code = subprocess.run(command, check=False).returncode
            if code:
                print(f"nothing was compared: the run on {device} ended with exit code {code}", file=sys.stderr)
                return 2
            records[device] = read_records(Store(store).latest())
    fidelity = compare(records["cuda"], records["stub"])
    report(fidelity)
    if arguments.keep:
        print(f"kept in {keep(arguments.matrix, records, fidelity)}")
    return 0 if fidelity.holds else 1


def report(fidelity: Fidelity) -> None:
    """Print what agrees and every variant that does not."""
    for difference in fidelity.differences:
        print(f"{difference.label}: {', '.join(difference.fields)} differ")
        print(f"  GPU:  {difference.on_gpu}\n  stub: {difference.on_stub}")
    for label in fidelity.only_one:
        print(f"{label}: recorded on one of the two only")
    agree = fidelity.compared - len(fidelity.differences)
    print(f"{agree} of {fidelity.compared} variants agree on {', '.join(COMPARED)}")


def keep(matrix: str, records: dict[str, tuple[Record, ...]], fidelity: Fidelity, folder: Path = REFERENCE) -> Path:
    """Write the facts of the GPU and one line per variant: what it did there, and whether the stub did the same."""
    facts = dict(next(iter(records["cuda"])).facts)
    differing = {difference.label for difference in fidelity.differences}
    name = "-".join(str(facts.get(fact)) for fact in ("device_name", "torch")).replace(" ", "-").lower()
    content = {
        "matrix": matrix,
        "date": datetime.now(UTC).date().isoformat(),
        "facts": facts,
        "compared": fidelity.compared,
        "agree": fidelity.compared - len(fidelity.differences),
        "variants": [
            {"key": r.key, "label": r.label, "stub_agrees": r.label not in differing}
            | {field: getattr(r, field) for field in COMPARED}
            for r in records["cuda"]
        ],
    }
    file = folder / f"fidelity-{matrix}-{name}.json"
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.exit(main())
