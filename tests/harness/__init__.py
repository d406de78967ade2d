# SPDX-License-Identifier: BSD-3-Clause
"""Real IOCs, real clients and the monitor, as processes that a test can hold in its hand."""
