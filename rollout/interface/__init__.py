"""The Python interface; users import it as ``gamut``."""
