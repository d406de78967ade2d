# SPDX-License-Identifier: BSD-3-Clause
"""Tests that take much time. Make check runs the short form of some, make soak (tools/soak.sh) the long form:

    @soak
    def test_many():
        for i in range(size(5, 100)): ...     # 5 in make check, 100 in make soak

Those of CHECK_LONG have the mark "long": make checkLong runs them, and make check does not.
"""
import os

import pytest

IS_LONG = os.environ.get("SOAK") == "1"

soak = pytest.mark.soak  # the mark of the tests that have a long form


def size(short, long):
    return long if IS_LONG else short


# What make check leaves to make checkLong: a part of the test's name, and a cheaper test that sees a fault of the same class.
CHECK_LONG = {
    "fuzz/test_fuzz.py": "test_unit.py",  # the parsers, with the inputs that they once failed with
    # an IOC or a monitor comes, ends, or runs short of something
    "faults/test_faults.py": "test_monitor_end_leaves_nothing[SIGKILL]",
    "test_killed_while_it_ends[service]": "test_killed_while_it_ends[all]",
    "test_monitor_end_leaves_nothing[exit]": "test_monitor_end_leaves_nothing[SIGKILL]",
    "test_monitor_end_leaves_nothing[SIGTERM]": "test_monitor_end_leaves_nothing[SIGKILL]",
    "test_start_that_runs_out_of_threads": "test_few_perf_events",
    "test_few_threads": "testForeign",
    "test_exec_that_no_event_told": "testIocFinder",
    "test_name_of_a_restarted_ioc": "test_second_ioc_with_the_name",
    "test_hostile.py::test_few_files": "test_reserves.py::test_few_files",
    "test_many_connections_hide_no_client": "test_many_connections_hide_no_client_that_has_gone",
    "test_a_file_that_cannot_be_used[other]": "test_a_file_that_cannot_be_used[garbage]",
    "test_a_file_that_cannot_be_used[folder]": "test_a_file_that_cannot_be_used[missing]",
    "test_a_file_that_is_lost_while_it_is_used[removed]": "test_a_file_that_is_lost_while_it_is_used[damaged]",
    "test_it_tries_again_by_itself": "testUsage",
    "test_large_iocs": "test_records",
    "test_table_grows": "test_places_are_used_again",
    # counts: threads that meet
    "test_passes_stretches.py": "test_passes_random.py",
    "test_passes_disabled.py::test_others_process": "test_passes_random.py",
    "test_passes_disabled.py::test_puts_disable": "test_passes_random.py",
    "test_put_to_scan_while_other_lists_end": "test_explore",
    "test_put_to_passive_while_other_lists_end": "test_explore",
    "test_put_begins_before_passes_are_watched": "test_explore",
    "test_level_changes_while_a_lock_is_held": "test_explore",
    "test_back_to_chains_in_the_middle_of_a_pass": "test_levels_change",
    "test_put_to_scan_takes_long[begun before]": "test_put_to_scan_takes_long[seen]",
    "test_passes_begin_while_chains_are_timed": "test_counts_while_turns_come_and_go",
    "test_turns_in_the_middle_of_passes": "test_counts_while_turns_come_and_go",
    "test_scan_lists_that_change_while_they_run": "test_records_go_to_other_lists",
    "test_clock_of_the_host_goes_back_while_passes_are_watched[alone-counts]": "passes_are_watched[chain-counts]",
    "test_clock_of_the_host_goes_back_while_passes_are_watched[alone-chains]": "passes_are_watched[chain-chains]",
    # links and hangs
    "test_long_pass_is_no_hang": "testHangFinder",
    "test_hang_in_one_long_callback": "testHangFinder",
    "test_callbacks_that_wait": "test_hang_in_a_callback",
    "test_links_put_in_quick_succession": "test_link_that_is_new",
    # puts and packets
    "test_put_corpus_lost.py": "test_nothing_lost",
    "test_many_puts": "test_steady_puts",
    "test_probes_are_set_again_at_once": "test_steady_puts",
    "test_hostile_packets.py": "test_attacked_connection",
    "test_monitor_stands_still[before]": "test_monitor_stands_still[meanwhile]",
    "test_ioc_stands_still[False]": "test_ioc_stands_still[True]",
    "test_ioc_stands_still_within_a_put[False]": "test_ioc_stands_still_within_a_put[True]",
    "test_backlog_of_a_slow_ioc": "test_puts_that_are_answered_and_write_nothing",
    "test_monitor_of_sender_killed": "test_monitor_of_sender_only",
    "test_monitor_of_receiver_starts_later": "test_monitor_of_receiver_only",
    # what is shown and kept
    "test_stopped_ioc[3]": "test_stopped_ioc[26]",
    "test_stopped_ioc[8]": "test_stopped_ioc[26]",
    "test_they_survive[exit]": "test_they_survive[kill]",
    "test_why[chains]": "test_why[trace]",
    "test_chains_leave_room_for_puts": "test_one_ioc_does_not_hide_another",
    "test_servers_that_are_not_base": "test_other_servers_are_not_announced_unasked",
    "test_in_a_terminal": "test_demo.py::test_demo",
}


def is_long(nodeid):
    return any(nodeid.endswith(name) or f"{name}[" in nodeid or f"{name}::" in nodeid for name in CHECK_LONG)
