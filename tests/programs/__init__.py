# SPDX-License-Identifier: BSD-3-Clause
"""Clients and servers that the tests start as separate processes."""
