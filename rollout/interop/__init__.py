"""Games for the programs of others: servers, trainers and benchmarks that play one game at a time.

``rollout.interop.games`` is what they share; see its ``Games``.
"""
