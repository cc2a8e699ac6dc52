"""The page that shows a dataset in a browser: its episodes, pictures, numbers and transcripts.

``write_page`` writes one file that needs nothing else; ``page``, ``served_summary`` and
``served_episode`` are the parts that ``gamut dataset view --serve`` sends. ``write_listing`` and
``served_page`` list something else than a dataset, as the results of an evaluation. Texts of games
and models are data in the page, never markup, and its policy for content forbids every script but
its own.
"""

from rollout.data.view.listing import Listing, Video, listed_episodes
from rollout.data.view.page import (
    MOST_BYTES,
    Written,
    page,
    served_episode,
    served_page,
    served_summary,
    write_listing,
    write_page,
)

__all__ = [
    "MOST_BYTES",
    "Listing",
    "Video",
    "Written",
    "listed_episodes",
    "page",
    "served_episode",
    "served_page",
    "served_summary",
    "write_listing",
    "write_page",
]
