"""Games behind servers of others: OpenEnv and MCP."""

from bridges.openenv.bridge import OpenenvBridge
from bridges.openenv.mcp import McpBridge

__all__ = ["McpBridge", "OpenenvBridge"]
