"""The valley: a simulator of the parts of Stardew Valley 1.6 that StarDojo's tasks touch."""
