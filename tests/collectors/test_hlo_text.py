"""Collectives and their groups as HLO text prints them."""

import pytest

from collectors.device.hlo.text import collective_of_text, groups_of_text


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("replica_groups={{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("replica_groups=[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=mesh['x'=2,'y'=1,'z'=2] {'z'}", ((0, 1), (2, 3))),
        ("replica_groups=mesh['x'=2,'y'=1,'z'=2] {'x'}", ((0, 2), (1, 3))),
        ("replica_groups=mesh['x'=8] {'x':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=mesh['x'=8] {'x':(2)4}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("source_target_pairs={{0,1},{1,0},{2,3}}", ((0, 1), (2, 3))),
        ("replica_groups=[999999999,999999999]<=[999999999]", None),
        ("replica_groups=mesh['x'=99999999999] {'x'}", None),
        ("replica_groups={}", None),
    ],
)
def test_groups_of_text(text, groups):
    assert (
        groups_of_text(f"%all-reduce.1 = f32[] all-reduce(f32[] %x), channel_id=1, {text}, use_global=true") == groups
    )


def test_collectives_as_a_tpu_trace_names_them():
    line = (
        "%all-reduce = f32[5,1024]{1,0:T(8,128)} all-reduce(f32[5,1024]{1,0:T(8,128)} %bitcast, bf16[2]{0} %b), "
        "channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), to_apply=%region"
    )
    found = collective_of_text(line)
    assert (found.kind, found.part, found.bytes, found.dtype) == ("all-reduce", "", 5 * 1024 * 4 + 4.0, "f32")
    assert found.groups[1] == (1, 5)
    done = collective_of_text("%all-gather-done.2 = bf16[16] all-gather-done((bf16[4], bf16[16]) %all-gather-start.2)")
    assert (done.kind, done.part) == ("all-gather", "done")
    assert collective_of_text("%fusion.1 = f32[] fusion(f32[] %all-reduce.1)") is None
    assert collective_of_text("no HLO at all") is None


@pytest.mark.parametrize("does", ["ragged-all-to-all", "ragged-all-to-all-start", "async-start"])
def test_of_a_ragged_exchange_only_what_is_sent_has_bytes(does):
    name = "ragged-all-to-all-start" if does.endswith("-start") else does
    line = f"%{name}.1 = bf16[8,4]{{1,0}} {does}(bf16[8,4]{{1,0}} %x, bf16[8,4]{{1,0}} %into, s32[4] %n)"
    found = collective_of_text(line)
    assert (found.kind, found.bytes, found.dtype) == ("all-to-all", 64.0, "bf16")


@pytest.mark.parametrize(
    ("line", "kind", "part", "size"),
    [
        ("%psum.3 = f32[8]{0:T(256)} all-reduce(f32[8]{0:T(256)} %x), to_apply=%add", "all-reduce", "", 32.0),
        ("%g.7 = (bf16[4]{0}, u32[]{:S(2)}) all-gather-start(bf16[4]{0} %y)", "all-gather", "start", 8.0),
        ("%g.8 = bf16[16]{0} all-gather-done((bf16[4]{0}, u32[]{:S(2)}) %g.7)", "all-gather", "done", 0.0),
        ("%all_to_all.9 = bf16[4,8]{1,0:T(8,128)(2,1)S(1)} all-to-all(bf16[4,8]{1,0} %b)", "all-to-all", "", 64.0),
    ],
)
def test_a_collective_is_one_by_whatever_name(line, kind, part, size):
    found = collective_of_text(f"{line}, replica_groups=[1,4]<=[4]")
    assert (found.kind, found.part, found.bytes) == (kind, part, size)
    assert part == "done" or found.groups == ((0, 1, 2, 3),)
