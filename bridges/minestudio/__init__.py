"""MineStudio: its simulator on the embedded Minecraft.

MineStudio's Python code starts a Java program and talks to it over a socket. ``engine`` is that
program's stand-in: the embedded world of ``bridges.mineflayer`` behind the same socket. ``install``
writes the two files by which MineStudio starts it.
"""
