"""A battle in a real window, and the client that plays any window by pixels, clicks and keys."""

from bridges.starbench.window.client import WindowClient
from bridges.starbench.window.hosted import HostedWindow
from bridges.starbench.window.real import FrameClient, open_real

__all__ = ["FrameClient", "HostedWindow", "WindowClient", "open_real"]
