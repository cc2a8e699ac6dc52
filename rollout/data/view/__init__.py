"""The page that shows a dataset in a browser: its episodes, pictures, numbers and transcripts.

``write_page`` writes one file that needs nothing else; ``page``, ``served_summary`` and
``served_episode`` are the parts that ``gamut dataset view --serve`` sends. Texts of games and
models are data in the page, never markup, and its policy for content forbids every script but its
own.
"""

from rollout.data.view.page import (
    MOST_BYTES,
    Written,
    listed_episodes,
    page,
    served_episode,
    served_summary,
    write_page,
)

__all__ = [
    "MOST_BYTES",
    "Written",
    "listed_episodes",
    "page",
    "served_episode",
    "served_summary",
    "write_page",
]
