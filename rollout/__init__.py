"""Gamut: games at scale on Ray, recorded as Arrow datasets.

Nothing is imported here, so that importing any part of it costs that part alone. Start reading at
``rollout.api`` (the words and the seams) and ``rollout.collect`` (the loop).
"""
