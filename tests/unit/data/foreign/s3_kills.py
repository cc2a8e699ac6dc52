"""Run with s3fs and moto: runs with an output in S3 are killed, and the store is cut off.

Arguments: an empty folder, and the packages of the environment, which come after our own.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4]))
os.environ["S3_PACKAGES"] = sys.argv[2]

from benchmarks.faults import stores

folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
row = stores.kills(folder, times=2, episodes=600)
assert not row.wrong, row
(other := folder / "cut").mkdir()
row = stores.cut(other, episodes=1500)
assert not row.wrong, row
