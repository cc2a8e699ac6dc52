"""Lets the tests here import ``store_fragments``; test folders are no packages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
