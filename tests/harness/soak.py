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


# What make check leaves to make checkLong: the end of the test's name, and a cheaper test that sees a fault of the same class.
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
    "test_plain_program_of_an_unwatched_ioc": "testPlainPrograms",
    "test_ioc_stop_and_start": "test_ioc_killed",
    "test_without[CAP_BPF]": "test_without[CAP_SYS_PTRACE]",
    "test_without[CAP_PERFMON]": "test_without[CAP_SYS_PTRACE]",
    "test_without[CAP_NET_RAW]": "test_without[CAP_DAC_READ_SEARCH]",
    "test_usage.py::test_a_full_disk": "test_a_full_file_is_told",
    "test_hostile.py::test_few_files": "test_reserves.py::test_few_files",
    "test_many_connections_hide_no_client": "test_many_connections_hide_no_client_that_has_gone",
    "test_a_file_that_cannot_be_used[other]": "test_a_file_that_cannot_be_used[garbage]",
    "test_a_file_that_cannot_be_used[folder]": "test_a_file_that_cannot_be_used[missing]",
    "test_a_file_that_is_lost_while_it_is_used[removed]": "test_a_file_that_is_lost_while_it_is_used[damaged]",
    "test_it_tries_again_by_itself": "testUsage",
    "test_memory_that_never_arrives_before_the_monitor": "test_memory_that_never_arrives",
    "test_fuse_that_never_answers[fuseCode]": "test_fuse_that_never_answers[fusePage]",
    "test_fuse_that_never_answers[fuseProgram]": "test_fuse_that_never_answers[fusePage]",
    "test_little_memory[addresses]": "test_little_memory[group]",
    "test_large_iocs": "test_records",
    "test_table_grows": "test_places_are_used_again",
    "test_bounded_memory_over_restarts": "test_start_again",
    "test_losses_end": "test_losses",
    # counts: threads that meet
    "test_old_defects": "test_explore",
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
    "test_all_chains_are_timed": "test_in_turns",
    "test_scan_periods_are_always_seen": "test_health.py::test_scan_",
    "test_scan_lists_that_change_while_they_run": "test_records_go_to_other_lists",
    "test_clock_of_the_host_goes_back_while_passes_are_watched[alone-counts]": "passes_are_watched[chain-counts]",
    "test_clock_of_the_host_goes_back_while_passes_are_watched[alone-chains]": "passes_are_watched[chain-chains]",
    "test_clock_goes_back[before it is watched-counts]": "test_clock_goes_back[before it is watched-chains]",
    "test_clock_goes_back[watched-counts]": "test_clock_goes_back[watched-chains]",
    "test_clock_of_the_host_went_back[Passive-counts]": "test_clock_of_the_host_went_back[1 second-counts]",
    "test_async_soft_channel_in_its_own_lock_set[chains-counts]": "test_async_soft_channel_in_its_own_lock_set[chains-chains]",
    "test_async_soft_channel_in_its_own_lock_set[passes-counts]": "test_async_soft_channel_in_its_own_lock_set[passes-chains]",
    "test_driver_sets_the_time_stamp[stamps-counts]": "test_driver_sets_the_time_stamp[stamps-chains]",
    "test_driver_sets_the_time_stamp[scans-chains]": "test_driver_sets_the_time_stamp[scans-counts]",
    "test_forwards_without_a_time_stamp[UNDEFD]": "test_forwards_without_a_time_stamp[UNDEF]",
    "test_forwards_without_a_time_stamp[BADDOL]": "test_forwards_without_a_time_stamp[NODOL]",
    "test_source_of_time_changes[TSE--1]": "test_source_of_time_changes[TSE--2]",
    "test_record_moves_while_its_list_waits_for_it[earlier place]": "test_record_moves_while_its_list_waits_for_it[other list]",
    "test_record_moves_while_its_list_waits_for_it[no list]": "test_record_moves_while_its_list_waits_for_it[other list]",
    "test_fields_put_while_the_monitor_stands_still[one put, not processed]": "stands_still[nothing processed]",
    "test_fields_put_while_the_monitor_stands_still[one put, and another root]": "stands_still[counted by another root]",
    "test_fields_put_while_the_monitor_stands_still[an input link without PP]": "stands_still[an input link]",
    "test_fields_put_while_the_monitor_stands_still[the end goes first]": "stands_still[two links, one after the other]",
    "test_fields_put_while_the_monitor_stands_still[two records]": "stands_still[there and back]",
    "test_fields_put_while_the_monitor_stands_still[TSEL]": "stands_still[TSE]",
    "test_fields_put_while_the_monitor_stands_still[OMSL]": "stands_still[UDF]",
    "test_fields_put_while_the_monitor_stands_still[a disabled one in between]": "stands_still[one with a SCAN in between]",
    # links and hangs
    "test_long_pass_is_no_hang": "testHangFinder",
    "test_hang_in_one_long_callback": "testHangFinder",
    "test_callbacks_that_wait": "test_hang_in_a_callback",
    "test_hang_in_a_loop": "test_hang_in_a_callback",
    "test_deadlock[0-a mutex,]": "test_deadlock[1-",
    "test_put_by_pvaccess[softIocPVA]": "test_put_by_pvaccess[pvxs]",
    "test_links_put_in_quick_succession": "test_link_that_is_new",
    # puts and packets
    "test_put_corpus_lost.py": "test_nothing_lost",
    "test_many_puts": "test_steady_puts",
    "test_probes_are_set_again_at_once": "test_steady_puts",
    "test_hostile_packets.py": "test_attacked_connection",
    "test_monitor_stands_still[before]": "test_monitor_stands_still[meanwhile]",
    "test_ioc_stands_still[False]": "test_ioc_stands_still[True]",
    "test_ioc_stands_still_within_a_put[False]": "test_ioc_stands_still_within_a_put[True]",
    "test_seen_whom_it_serves[MANY-127.0.0.1]": "test_seen_whom_it_serves[MANY-[::1]]",
    "test_attacked_connection[other-finish]": "test_attacked_connection[other-reset]",
    "test_attacked_connection[ioc-reset]": "test_attacked_connection[ioc-finish]",
    "test_attacked_connection[other-twice]": "test_attacked_connection[ioc-twice]",
    "test_attacked_connection[other-far]": "test_attacked_connection[ioc-far]",
    "test_attacked_connection[other-session]": "test_attacked_connection[ioc-session]",
    "test_changing_links": "test_loads_slowly",
    "test_short_iocs": "test_loads_slowly",
    "test_older_connection[masquerade]": "test_older_connection[dnat]",
    "test_server_without_base[masquerade]": "test_server_without_base[dnat]",
    "test_usage.py::test_pv_access[softIocPVA]": "test_usage.py::test_pv_access[pvxs]",
    "pva.py::test_a_client_that_does_not_read[softIocPVA]": "pva.py::test_a_client_that_does_not_read[pvxs]",
    "pva.py::test_an_ioc_that_stands_still[softIocPVA]": "pva.py::test_an_ioc_that_stands_still[pvxs]",
    "pva.py::test_a_server_that_is_no_ioc[[::1]]": "pva.py::test_a_server_that_is_no_ioc[127.0.0.1]",
    "pva.py::test_two_clients[softIocPVA]": "pva.py::test_two_clients[pvxs]",
    "pva.py::test_a_connection_that_is_older[softIocPVA]": "pva.py::test_a_connection_that_is_older[pvxs]",
    "pva.py::test_table_of_clients[softIocPVA]": "pva.py::test_table_of_clients[pvxs]",
    "test_links_of_pvaccess[softIocPVA]": "test_links_of_pvaccess[pvxs]",
    "test_refused_channel_of_pvaccess[softIocPVA]": "test_refused_channel_of_pvaccess[pvxs]",
    "test_known_routine[SPIN-by_put]": "test_known_routine[SPIN-by_scan]",
    "test_known_routine[SLEEP-by_scan]": "test_known_routine[SLEEP-by_put]",
    "test_backlog_of_a_slow_ioc": "test_puts_that_are_answered_and_write_nothing",
    "test_monitor_of_sender_killed": "test_monitor_of_sender_only",
    "test_monitor_of_receiver_starts_later": "test_monitor_of_receiver_only",
    # what is shown and kept
    "test_stopped_ioc[3]": "test_stopped_ioc[26]",
    "test_stopped_ioc[8]": "test_stopped_ioc[26]",
    "test_they_survive[exit]": "test_they_survive[kill]",
    "test_why[chains]": "test_why[trace]",
    "test_why_two_hosts": "test_why[trace]",  # a put of a link is written when its run may have ended
    "test_frozen_by_a_late_scan": "test_frozen",
    "test_killed_while_it_writes": "test_gaps",
    "test_prepared_day": "test_who_wrote_what",
    "test_gone_ioc[11-signal 11]": "test_gone_ioc[9-signal 9]",
    "test_wrong_endpoint_is_reported_and_blocks_nothing[variables2-the path is wrong]": "test_wrong_endpoint_is_reported_and_blocks_nothing[variables1",
    "test_chains_leave_room_for_puts": "test_one_ioc_does_not_hide_another",
    "test_servers_that_are_not_base": "test_other_servers_are_not_announced_unasked",
    "test_in_a_terminal": "test_demo.py::test_demo",
}


def is_long(nodeid):
    return any(nodeid.endswith(name) or f"{name}[" in nodeid or f"{name}::" in nodeid for name in CHECK_LONG)
