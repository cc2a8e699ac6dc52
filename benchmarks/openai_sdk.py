"""Times the SDK of OpenAI for ``benchmarks.vlm``, in a Python that has it.

Standard input is a JSON object: ``url``, ``messages`` and ``calls``. Standard output is one with
``version``, ``ms``, the milliseconds of each call, and ``cpu_ms``, the processor time of a call.
"""

import json
import sys
import time

import openai

_WARM = 20  # calls that are not counted


def main() -> None:
    given = json.load(sys.stdin)
    client = openai.OpenAI(base_url=given["url"], api_key="none")
    found = []
    for number in range(given["calls"] + _WARM):
        if number == _WARM:
            used = time.process_time()
        began = time.perf_counter()
        client.chat.completions.create(model="m", messages=given["messages"])
        found.append(1e3 * (time.perf_counter() - began))
    cpu_ms = 1e3 * (time.process_time() - used) / given["calls"]
    json.dump({"version": openai.__version__, "ms": found[_WARM:], "cpu_ms": cpu_ms}, sys.stdout)


if __name__ == "__main__":
    main()
