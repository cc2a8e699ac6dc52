"""Lets the tests here, and games they start, import ``garbage_game``."""

import os
import sys
from pathlib import Path

FOLDER = str(Path(__file__).parent)

sys.path.insert(0, FOLDER)
before = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = FOLDER if not before else FOLDER + os.pathsep + before
