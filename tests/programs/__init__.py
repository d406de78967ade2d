# SPDX-License-Identifier: BSD-3-Clause
"""Programs that the tests start: clients and servers that have to be processes of their own."""
