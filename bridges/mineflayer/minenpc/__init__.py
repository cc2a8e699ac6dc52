"""MineNPC-Task in Minecraft: tasks, their conditions on runs, and scripted experts."""
