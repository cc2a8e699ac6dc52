"""The screen of a battle, and how clicks and keys play it."""

from bridges.starbench.screen.client import Client, EmulatorClient, send
from bridges.starbench.screen.controls import (
    KEYS,
    Click,
    Controls,
    Decision,
    Direct,
    Key,
    events_of,
    parse_direct,
)
from bridges.starbench.screen.drawn import LABELS, Label, Marks, Written
from bridges.starbench.screen.layout import Box, UiMap
from bridges.starbench.screen.renderer import Renderer

__all__ = [
    "KEYS",
    "LABELS",
    "Box",
    "Click",
    "Client",
    "Controls",
    "Decision",
    "Direct",
    "EmulatorClient",
    "Key",
    "Label",
    "Marks",
    "Renderer",
    "UiMap",
    "Written",
    "events_of",
    "parse_direct",
    "send",
]
