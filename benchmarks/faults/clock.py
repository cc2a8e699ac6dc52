"""The row in which the wall clock jumps, and the monotonic clock does not.

The clock of a shared machine must not be changed, so a small library is loaded before libc in the
driver and all its child processes: it adds the seconds in a file to the wall clock. (libfaketime
0.9.10 was tried; with Python 3.11 it makes ``time.sleep`` fail.)
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from benchmarks.faults.check import Row, checked
from benchmarks.faults.runs import Run, pause

_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    static volatile long *shared;
    if (!shared) {
        const char *path = getenv("GAMUT_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (file < 0) return 0;
        void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (page == MAP_FAILED) return 0;
        shared = page;
    }
    return *shared;
}

int clock_gettime(clockid_t which, struct timespec *out) {
    int status = syscall(SYS_clock_gettime, which, out);
    if (!status && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        out->tv_sec += offset();
    return status;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


def _library(folder: Path) -> Path:
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def _set(clock: Path, seconds: int) -> None:
    with clock.open("r+b") as file:  # in place: the file is mapped
        file.write(struct.pack("@l", seconds))


def jump(folder: Path) -> Row:
    """One hour forward, two back, one forward, for the driver, all of its Ray and its games."""
    clock = folder / "clock"
    clock.write_bytes(struct.pack("@l", 0))
    env = {"LD_PRELOAD": str(_library(folder)), "GAMUT_CLOCK": str(clock)}
    run = Run(folder, {"episodes": 300, "bridge": {"step_latency": 0.03}}, env=env)
    run.begin()
    jumps = 0
    for number, offset in enumerate((3600, -3600, 0)):
        run.until(60 * (number + 1))
        if run.alive:
            _set(clock, offset)
            jumps += 1
        pause(2.0)
    run.end()
    hours = {line[11:13] for line in run.log().splitlines() if line[:2] == "20"}
    injected = f"wall clock of driver, Ray and games +1 h, -2 h, +1 h ({jumps} jumps)"
    row = checked(run, "clock jump", injected, cause="", note=f"the log has {len(hours)} hours")
    if len(hours) < 3:
        row.wrong.append(f"the log has only the hours {sorted(hours)}")
    return row
