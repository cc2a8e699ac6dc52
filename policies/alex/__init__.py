"""Alex, MineLand's agent (arXiv 2403.19267), on the parts of companions; see docs/alex.md."""
