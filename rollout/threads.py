"""The number of threads of array operations in this process."""

from __future__ import annotations

_state = {"chosen": False}


def set_threads(count: int) -> None:
    """Sets the number of threads of torch and of NumPy's matrix products; 0 leaves both."""
    if count:
        import torch  # noqa: PLC0415 - slow to import

        torch.set_num_threads(count)
        _set_product_threads(count)


def spare_threads() -> None:
    """Gives NumPy's matrix products one thread, unless their number was chosen in this process.

    They use all cores otherwise, whatever torch is told, and wait for each other without leaving
    the processor to others: beside other work, an update of a small network took five times as
    long.
    """
    if not _state["chosen"]:
        _set_product_threads(1)


def _set_product_threads(count: int) -> None:
    import threadpoolctl  # noqa: PLC0415 - looks through all loaded libraries

    threadpoolctl.threadpool_limits(count, user_api="blas")
    _state["chosen"] = True
