# SPDX-License-Identifier: BSD-3-Clause
"""What the tests need: IOCs, clients, receivers and the monitor as processes, a bad link, and how tests are
scheduled."""
