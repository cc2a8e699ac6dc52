"""The policy ``callable``: any Python function, over columns or of one game."""

from policies.callable.context import Context, Left, Observation, Picture
from policies.callable.policy import CallablePolicy

__all__ = ["CallablePolicy", "Context", "Left", "Observation", "Picture"]
