"""Gamut: games at scale on Ray, recorded as Arrow datasets.

This package imports nothing, so importing one part does not load the others. Start reading at
``rollout.api`` (the interfaces) and ``rollout.collect`` (the main loop).
"""
