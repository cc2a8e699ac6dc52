"""One module per library; they run in its interpreter, and do not import Gamut."""
