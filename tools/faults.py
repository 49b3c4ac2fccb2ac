"""Kill a server's ledger for as long as one likes: python tools/faults.py --kills 10000 --seed 1

A child answers from four threads as fast as it can and is killed at a random moment, again and
again on the same ledger until that is exhausted, then on a new one. After every kill: all that has
left is in the ledger as it left, there are at most T entries, their chain is whole, and the counter
is right. `--power` cuts the power instead, after every call to the disk; `--http` kills whole
servers while clients query them over HTTP.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.support.serve_disk import built, power  # noqa: E402
from tests.support.serve_faults import kills  # noqa: E402
from tests.support.serve_http_faults import kills as http_kills  # noqa: E402


def main() -> int:
    """Run the faults and print what became of them; 1 if anything is wrong."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--power", action="store_true")
    arguments.add_argument("--http", action="store_true")
    arguments.add_argument("--folder", type=Path, help="Where; the disk that this is on is tested.")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        place = Path(name)
        if given.power:
            found = power(place, built(place))
        else:
            found = (http_kills if given.http else kills)(place, given.kills, given.seed)
    print(json.dumps(found))
    return 1 if found.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
