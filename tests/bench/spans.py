# SPDX-License-Identifier: BSD-3-Clause
"""Measures how many spans per second reach a collector, and prints a table. benchSpan makes chains of ten spans at
several rates and sends them to rotel (OTLP) and, if java is installed, to Zipkin.

    python -m tests.bench.spans [--seconds S] [--rates N,N,...]
"""
import argparse
import os
import platform
import re
import subprocess

from tests.harness import loopback, paths, zipkin
from tests.harness.rotel import Rotel

PROGRAM = paths.BENCH_BIN / "benchSpan"
LINE = re.compile(r"(\d+) made, (\d+) accepted, (\d+) lost, ([\d.]+) s, ([\d.]+) us to make, ([\d.]+) us to export, "
                  r"queue ([\d.]+) %")


def run(name, kind, receiver, rates, seconds):
    try:
        for rate in rates:
            out = subprocess.run([PROGRAM, receiver.url, kind, str(rate), str(seconds)], capture_output=True,
                                 text=True, timeout=seconds + 60).stdout
            made, sent, lost, took, make, export, queue = map(float, LINE.search(out).groups())
            late = f"{took - seconds:.1f}" if sent + lost == made else "not in 30"
            print(f"| {name} | {rate:,} | {made:,.0f} | {sent:,.0f} | {lost:,.0f} | {late} | {queue:.0f} | "
                  f"{make:.1f} | {export:.1f} |", flush=True)
    finally:
        receiver.discard()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rates", default="1000,10000,50000,100000,200000")
    args = parser.parse_args()
    loopback.use()
    rates = [int(r) for r in args.rates.split(",")]
    print(f"{platform.release()}, {os.cpu_count()} CPUs, which receiver and exporter share\n")
    print("| receiver | spans a second | made | accepted | lost | s until the last | queue, % | µs to make | "
          "µs to export |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    run("rotel, OTLP", "otlp", Rotel(printing=False).start(), rates, args.seconds)
    if why := zipkin.missing():
        print(f"\nno Zipkin: {why}")
    else:
        run("Zipkin 3.6.1", "zipkin", zipkin.Zipkin(), [r for r in rates if r <= 50000], args.seconds)


if __name__ == "__main__":
    main()
