"""Collections into S3, also killed: a local server of its protocol and s3fs, both elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest
from formats_data import python_with, run_with

pytestmark = pytest.mark.long

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize("script", ["s3_collects.py", "s3_kills.py"])
def test_a_collection_is_written_to_s3_and_read_from_there(script, tmp_path):
    server = ("moto[s3]==5.2.5", "flask", "flask-cors")  # moto[server] has every service of AWS
    python = python_with("s3fs==2026.9.0", *server, version=VERSION)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run(
        [python, "-c", where], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    # Our own Python, which has Gamut; the packages of the environment come after its own.
    run_with(Path(sys.executable), script, tmp_path, packages)
