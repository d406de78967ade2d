# SPDX-License-Identifier: BSD-3-Clause
"""The tests, the benchmarks and the emulated kernels. Python programs of this tree run as modules from its top folder
(python -m tests.bench.run), so that all of them find the package tests.harness."""
