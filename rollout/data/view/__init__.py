"""The page that shows a dataset in a browser: its episodes, their pictures, numbers and calls.

``write_page`` writes one file that needs nothing else; ``page`` and ``episode_data`` are the parts
that ``gamut dataset view --serve`` sends. Texts of games and models are data in the page, never
markup, and its policy for content forbids every script but its own.
"""

from rollout.data.view.page import (
    MOST_BYTES,
    Written,
    listed_episodes,
    page,
    served_episode,
    write_page,
)

__all__ = ["MOST_BYTES", "Written", "listed_episodes", "page", "served_episode", "write_page"]
