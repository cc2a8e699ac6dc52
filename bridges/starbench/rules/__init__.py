"""The rules of battles: what the files of ``data/`` say, and what follows from them."""
