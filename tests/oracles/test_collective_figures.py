"""Times of collectives: as the book "How to Scale Your Model" works them out, or as their formula gives.

V bytes after gathering, n chips in a ring, W bytes/s one way of a link: a ring that sends both ways gathers in V/(2W),
a line of n in V (n-1)/n / W, and a hop never takes less than 1 us. Switched nodes of D chips with W bytes/s each
gather V in V (D-1)/D / W.
"""

import pytest

from simulators.collectives import general, hierarchical, rings, rules, switched

US, MS, T = 1e6, 1e3, 1e-6
MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    "ours, printed, tolerance",
    [
        # v5e: 45 GB/s one way; 32 MiB over a ring of 16, and over a line of 4
        (rings.all_gather(32 * MIB, (16,), (True,), 45e9, 0.0).seconds * US, 377, 0.012),
        (rings.all_gather(32 * MIB, (4,), (False,), 45e9, 0.0).seconds * US, 560, 0.002),
        (rings.all_gather(128 * 1024, (4,), (False,), 45e9, T).seconds * US, 3, 1e-9),  # three hops, no less
        (rings.least_message_bytes(45e9, T), 45e3, 1e-9),
        # v4: 8 MiB of which a quarter is gathered over x, all of it over x and y; 256 bytes take two hops
        (rings.all_gather(2 * MIB, (4,), (True,), 45e9, 0.0).seconds * US, 23, 0.015),
        (rings.all_gather(8 * MIB, (4, 4), (True, True), 45e9, T).seconds * US, 46, 0.015),
        (rings.all_gather(256, (4,), (True,), 45e9, T).seconds * US, 2, 1e-9),
        (rings.point_to_point(16 * MIB, 2, 6, 45e9, T).bandwidth_s * US, 188, 0.01),
        (rings.point_to_point(16 * MIB, 2, 6, 45e9, T).seconds * US, 194, 0.01),
        (rules.critical_tokens(459e12, 180e9), 2550, 1e-9),
        (rules.critical_tokens(3.8e18, 50e12), 76_000, 1e-9),
        (rules.critical_tokens(990e12, 400e9), 2475, 1e-9),
        # eight H100, 450 GB/s each
        (switched.all_gather(512 * MIB, [(8, 450e9)]) * MS, 1.04, 0.005),
        (switched.all_reduce(32 * MIB, [(8, 450e9)], sharp=True) * US, 75, 0.006),
        (switched.gathering_bytes_per_s(8, 450), 514, 0.001),
        (switched.gathering_bytes_per_s(32, 400), 413, 0.001),
        (switched.egress_bytes_per_s(4 * 18, 400e9), 3.6e12, 1e-9),
        # Google's figures of whole pods: links across the middle both ways, and every link of every chip
        (rules.bisection_bytes_per_s(32, 50e9), 1.6e12, 1e-9),
        (rules.bisection_bytes_per_s(64, 100e9), 6.4e12, 1e-9),
        (rules.pod_bytes_per_s(256, 4, 100e9), 102.4e12, 1e-9),
        (rules.pod_flops_per_s(9216, 4614e12), 42.5e18, 0.001),
    ],
)
def test_published_figures(ours, printed, tolerance):
    assert ours == pytest.approx(printed, rel=tolerance)


@pytest.mark.parametrize(
    "ours, worked_out",
    [
        (switched.all_to_all(1e9, [(8, 450e9)]) * US, 1e9 / 8 * 7 / 8 / 450e9 * US),
        (switched.all_to_all(1e9, [(2, 400e9)]) * US, 625.0),
        # 1 GiB over three axes of 4 with both ways of 90 GB/s: 2^30 / (3 * 180e9), and six microseconds at least
        (rings.all_gather(GIB, (4, 4, 4), (True,) * 3, 90e9, T).seconds * MS, 1.988410785),
        (rings.crossover_bytes(rings.all_gather(1.0, (4, 4, 4), (True,) * 3, 90e9, T)), 6e-6 * 540e9),
        (rings.crossover_bytes(rings.all_gather(1.0, (16,), (True,), 45e9, T)), 8e-6 * 90e9),
        # two slices of 64: each chip keeps 1/64, and half of it crosses twice at 6.25 GB/s
        (hierarchical.between_slices(GIB, 64, 2, 6.25e9, passes=2).seconds * MS, 2.68435456),
        # 1,024 chips send 1 GiB among them, alike: 1 KiB a pair, and so many pairs over the busiest link of 200 GB/s
        (general.all_to_all_time(GIB, 1024, 1189.3333, 200e9, 0, T).seconds * US, 6.089386666),
        (general.all_to_all_time(GIB, 1024, 2048, 200e9, 0, T).seconds * US, 10.48576),
    ],
)
def test_figures_worked_out_from_bytes_and_links(ours, worked_out):
    assert ours == pytest.approx(worked_out, rel=1e-6)
