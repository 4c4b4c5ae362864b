"""TensorBoard's event files; every one here was written for these tests."""

import gzip
import math
import struct
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.training import tensorboard
from errors import InputError
from tests.collectors import event_files as files
from tests.collectors.event_files import BEGUN, event, logged, part, record, simple, tensor, version, whole
from tests.collectors.reading import read, source_of

S = 1_000_000_000
BEGUN_NS = 1_772_600_000_250_000_000
NAME = "events.out.tfevents.1772600000.node-7"


def of(tmp_path, data, name=NAME):
    source = source_of(tmp_path, data, name)
    assert tensorboard.sniff(source) >= 0.6
    return read(tensorboard, source)


def values(got):
    return [(row["step"], row["name"], row["value"]) for row in got.rows.get("scalars", [])]


def test_numbers_have_the_time_and_the_step_of_their_event(tmp_path):
    got = of(tmp_path, logged([(BEGUN + 0.5, 0, {"loss": 2.5}), (BEGUN + 1, 1 << 40, {"loss": 1.25, "lr": math.nan})]))
    assert values(got)[:2] == [(0, "loss", 2.5), (1 << 40, "loss", 1.25)]
    assert math.isnan(values(got)[2][2])
    assert got.column("scalars", "ts_ns") == [BEGUN_NS + S // 2, BEGUN_NS + S, BEGUN_NS + S]
    assert not got.lost and "steps" not in got.rows


def narrow(number, value):
    return files.varint(number << 3 | 5) + struct.pack("<f", value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (tensor("x", 1, part(4, struct.pack("<f", 0.25))), 0.25),  # float, raw
        (tensor("x", 1, part(5, struct.pack("<f", -0.25))), -0.25),  # packed
        (tensor("x", 1, narrow(5, 0.5)), 0.5),  # not packed
        (tensor("x", 2, part(4, struct.pack("<d", 0.1))), 0.1),
        (tensor("x", 2, part(6, struct.pack("<d", 0.1))), 0.1),
        (tensor("x", 14, part(4, b"\x80\x3f")), 1.0),  # bf16
        (tensor("x", 14, whole(13, 0xC000)), -2.0),
        (tensor("x", 19, part(13, files.varint(0x3C00))), 1.0),  # half
        (tensor("x", 19, part(4, struct.pack("<e", 0.125))), 0.125),
        (tensor("x", 3, part(4, struct.pack("<i", -7))), -7),
        (tensor("x", 3, whole(7, -7)), -7),
        (tensor("x", 5, part(4, struct.pack("<h", -300))), -300),
        (tensor("x", 6, part(4, b"\xff")), -1),
        (tensor("x", 4, part(4, b"\xff")), 255),
        (tensor("x", 9, whole(10, 1 << 40)), 1 << 40),
        (tensor("x", 9, part(4, struct.pack("<q", -(1 << 40)))), -(1 << 40)),
        (tensor("x", 10, whole(11, 1)), 1),  # bool
        (tensor("x", 22, whole(16, (1 << 32) - 1)), (1 << 32) - 1),
        (tensor("x", 23, part(4, struct.pack("<Q", 1 << 63))), 1 << 63),
        (tensor("x", 1, part(5, struct.pack("<f", 3)), shape=(1, 1)), 3),
        (simple("x", 0.0), 0),
    ],
)
def test_a_tensor_of_one_number_is_that_number(tmp_path, value, expected):
    assert values(of(tmp_path, version() + record(event(BEGUN, 3, value)))) == [(3, "x", expected)]


def test_what_is_no_number_is_counted(tmp_path):
    several = tensor("h", 2, part(4, bytes(72)), shape=(3, 3))
    data = version() + b"".join(
        record(event(BEGUN, 1, value))
        for value in (
            simple("loss", 1),
            several,
            part(1, b"old") + part(5, whole(1, 3)),
            part(1, b"picture") + part(4, whole(1, 3)),
            part(1, b"sound") + part(6, b""),
            part(1, b"nothing"),
            tensor("none", 1, shape=(0,)),
            tensor("no value", 1),
            tensor("of a type of its own", 40, part(4, b"1234")),
            files.text("notes", "hello"),
        )
    )
    data += record(b"\x09" + struct.pack("<d", BEGUN) + part(4, b"graph")) + record(b"\x09" + bytes(3))
    got = of(tmp_path, data)
    assert values(got) == [(1, "loss", 1)]
    counted = dict(lost.what[:-1].split(" (") for lost in got.lost)
    assert counted == {
        "tensors": "1",
        "histograms": "1",
        "images": "1",
        "sounds": "1",
        "values": "4",
        "texts": "1",
        "graphs": "1",
        "records": "1",
    }


def test_values_of_one_event_and_fields_in_another_order(tmp_path):
    summary = part(5, b"".join(part(1, simple(f"m{n}", n)) for n in range(300)))
    data = record(summary + whole(2, 9) + b"\x09" + struct.pack("<d", BEGUN) + whole(20, 5))
    got = of(tmp_path, version() + data)
    assert values(got) == [(9, f"m{n}", n) for n in range(300)]
    assert set(got.column("scalars", "ts_ns")) == {BEGUN_NS}


def test_more_values_than_a_block_has_room_for(tmp_path, monkeypatch):
    from collectors.training.tensorboard import records

    monkeypatch.setattr(records, "MOST_VALUES", 7)
    monkeypatch.setattr(records, "BLOCK_BYTES", 50)
    one = event(BEGUN, 1, *(simple(f"m{n}", n) for n in range(40)))
    got = of(tmp_path, version() + record(one) + logged([(BEGUN, n, {"loss": n}) for n in range(50)], None))
    assert values(got) == [(1, f"m{n}", n) for n in range(40)] + [(n, "loss", n) for n in range(50)]


def test_times_that_are_none_are_not_known(tmp_path):
    at = (math.nan, math.inf, -5.0, 0.0, 1e300, BEGUN)
    got = of(tmp_path, version() + b"".join(record(event(one, 1, simple("x", 1))) for one in at))
    assert got.column("scalars", "ts_ns") == [None] * 5 + [BEGUN_NS]
    assert got.reasons() == "values (5): they name no time: when they were logged is not known"


def test_names_are_cut_and_cleaned(tmp_path):
    data = version() + record(event(BEGUN, 1, simple(b"n" * (1 << 20), 1), simple(b"\xff\x00a", 2), simple("", 3)))
    assert [name for _, name, _ in values(of(tmp_path, data))] == ["n" * 200, "\ufffd\x00a", ""]


def test_units_are_told_where_names_tell_them(tmp_path):
    told = {
        "perf/step_time_seconds": "s",
        "perf/per_device_tflops": "TFLOP",
        "perf/per_device_tflops_per_sec": "TFLOP/s",
        "throughput(tps)": "tokens/s",
        "memory/max_active(GiB)": "GiB",
        "mfu(%)": "%",
        "timing_s/gen": "s",
        "train/train_runtime": "s",
        "train/train_samples_per_second": "samples/s",
        "mem-reserved-bytes": "B",
        "loss": None,
    }
    got = of(tmp_path, logged([(BEGUN, 1, dict.fromkeys(told, 1.0))]))
    assert dict(zip(got.column("scalars", "name"), got.column("scalars", "unit"), strict=True)) == told


# --- what is damaged


WHOLE = logged([(BEGUN + n, n, {"loss": n}) for n in range(20)])
EACH = len(record(event(BEGUN, 5, simple("loss", 1))))


def steps_of(got):
    return [step for step, _, _ in values(got)]


def test_the_last_record_may_be_written_in_part(tmp_path):
    for cut in (1, EACH - 1, EACH - 12, 20):
        got = of(tmp_path, WHOLE[:-cut])
        assert steps_of(got) == list(range(19))
        assert got.reasons() == "the last record: it was written in part"


def test_a_damaged_record_is_passed_over_and_told(tmp_path):
    at = len(WHOLE) - 5 * EACH
    for place in (12, 20, EACH - 1):  # its data, and its last checksum
        data = bytearray(WHOLE)
        data[at + place] ^= 4
        got = of(tmp_path, bytes(data))
        assert steps_of(got) == [n for n in range(20) if n != 15]
        assert got.lost[0].offset == at and f"{EACH} bytes in 1 place" in got.reasons()


def test_reading_goes_on_behind_a_damaged_length(tmp_path):
    at = len(WHOLE) - 5 * EACH
    for place in (0, 7, 9):
        data = bytearray(WHOLE)
        data[at + place] ^= 4
        got = of(tmp_path, bytes(data))
        assert steps_of(got) == [n for n in range(20) if n != 15]
        assert got.lost[0].offset == at


def test_reading_goes_on_behind_bytes_that_are_lost_or_foreign(tmp_path):
    at = len(WHOLE) - 5 * EACH
    for data in (
        WHOLE[: at + 20] + WHOLE[at + 30 :],
        WHOLE[:at] + bytes(5000) + WHOLE[at + EACH :],
        WHOLE[: at + 5] + WHOLE[at + EACH :],
    ):
        got = of(tmp_path, data)
        assert steps_of(got) == [n for n in range(20) if n != 15]
        assert len(got.lost) == 1 and got.lost[0].offset == at


def test_whole_records_within_the_length_of_a_cut_one_are_read(tmp_path):
    """Whatever stands where its length ends: nothing, the next record, or its middle."""
    long = record(event(BEGUN, 99, *(simple(f"name {n}", n) for n in range(40))))
    at = len(WHOLE) - 5 * EACH
    for kept in (20, len(long) - EACH, len(long) - 2 * EACH, len(long) - 5 * EACH, len(long) - 5 * EACH - 7):
        got = of(tmp_path, WHOLE[:at] + long[:kept] + WHOLE[at:])
        assert steps_of(got) == list(range(20)), kept
        assert f"{kept:,} bytes in 1 place" in got.reasons()


def test_damage_over_blocks(tmp_path, monkeypatch):
    from collectors.training.tensorboard import records

    monkeypatch.setattr(records, "BLOCK_BYTES", 64)
    at = len(WHOLE) - 5 * EACH
    got = of(tmp_path, WHOLE[:at] + b"x" * 1000 + WHOLE[at:])
    assert steps_of(got) == list(range(20))
    assert "1,000 bytes in 1 place" in got.reasons()
    got = of(tmp_path, WHOLE + b"x" * 1000)
    assert steps_of(got) == list(range(20)) and "1,000 bytes in 1 place" in got.reasons()


def test_a_record_too_long_to_be_a_number_is_not_looked_into(tmp_path, monkeypatch):
    from collectors.training.tensorboard import records

    monkeypatch.setattr(records, "BLOCK_BYTES", 4096)
    path = tmp_path / "long"
    size = 65 << 20
    head = struct.pack("<Q", size)
    with path.open("wb") as f:
        f.write(version() + head + files.masked(head))
        f.seek(size + 4, 1)
        f.write(record(event(BEGUN, 1, simple("x", 1))))
    got = read(tensorboard, Source(path, NAME))
    assert values(got) == [(1, "x", 1)]
    assert got.reasons() == "records (1): longer than 64 MiB, as no number is"


def test_a_gzipped_file_that_is_cut(tmp_path):
    packed = gzip.compress(logged([(BEGUN + n, n, {"loss": n % 7}) for n in range(5000)]), 1)
    assert len(values(of(tmp_path, packed, f"{NAME}.gz"))) == 5000
    got = of(tmp_path, packed[: len(packed) // 2], f"{NAME}.gz")
    assert 500 < len(values(got)) < 5000 and "the last record: it was written in part (" in got.reasons()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty: no record"),
        (version(), "the program that opened it logged nothing"),
        (bytes(400), "no record in it is whole"),
        (WHOLE[:20], "no record in it is whole"),
        (version() + record(event(BEGUN, 1, files.text("a", "b"))), "no number in it, in 2 records: 1 text"),
    ],
)
def test_a_file_without_a_number_is_refused(tmp_path, data, why):
    with pytest.raises(InputError, match=why):
        of(tmp_path, data)


def test_other_files_are_not_claimed(tmp_path):
    example = record(part(1, part(1, b"a feature")))  # a record of training data
    for data in (example, b"", b"text\n", bytes(100), b"{}", b"\x80\x02}q\x00.", WHOLE[1:]):
        assert tensorboard.sniff(source_of(tmp_path, data, "train.tfrecord")) == 0
    assert tensorboard.sniff(source_of(tmp_path, WHOLE, "any name")) == 0.97
    assert tensorboard.sniff(source_of(tmp_path, b"events", NAME)) == 0
    assert tensorboard.sniff(source_of(tmp_path, example, NAME)) == 0


# --- facts of what the job ran with


def texts(told):
    return version() + b"".join(record(event(BEGUN, 0, files.text(name, said))) for name, said in told.items())


def test_maxtext_tells_its_parameters(tmp_path):
    told = {
        "num_model_parameters": "8030261248",
        "model_name": "llama3-8b",
        "per_device_batch_size": "4.0",
        "max_target_length": "8192",
        "ici_fsdp_parallelism": "16",
        "ici_tensor_parallelism": "1",
        "steps": "100",
        "dtype": "bfloat16",
        "hardware": "tpu",
        "quantization": "",
    }
    got = of(tmp_path, texts(told) + files.maxtext(range(3)))
    assert got.facts == {
        "model": "llama3-8b",
        "per_device_batch_size": 4.0,
        "max_target_length": 8192,
        "planned_steps": 100,
        "precision": "bfloat16",
        "hardware": "tpu",
        "parallelism": {"ici_fsdp": 16},
        "parameters": 8030261248.0,
    }
    assert len(got.rows["steps"]) == 3


def test_megatron_tells_its_arguments(tmp_path):
    told = {"world_size": "16", "seq_length": "4096", "micro_batch_size": "1", "global_batch_size": "128"}
    got = of(tmp_path, texts(told | {"params_dtype": "torch.bfloat16", "tensor_model_parallel_size": "2"}))
    assert got.facts == {
        "chips": 16,
        "sequence_length": 4096,
        "global_batch": 128,
        "micro_batch": 1,
        "parallelism": {"tensor": 2},
        "precision": "bf16",
    }


def test_the_trainer_tells_its_arguments_and_its_model(tmp_path):
    told = {
        "args": '{"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "max_steps": -1, "bf16": true}',
        "model_config": '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, '
        '"intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000}',
    }
    got = of(tmp_path, texts(told) + logged([(BEGUN, 1, {"train/loss": 1})], None))
    model = got.facts.pop("model")
    assert model["hidden_size"] == 4096 and model["model_type"] == "llama"
    assert got.facts == {"per_device_batch_size": 8, "gradient_accumulation_steps": 2, "precision": "bf16"}


@pytest.mark.parametrize("said", ["{", "[" * 100_000, "null", '{"max_steps": 1e999}', '{"max_steps": "x"}'])
def test_texts_that_are_not_what_they_seem(tmp_path, said):
    got = of(tmp_path, texts({"args": said, "model_config": said}) + logged([(BEGUN, 1, {"x": 1})], None))
    assert got.facts == {}


# --- steps


def test_steps_of_maxtext(tmp_path):
    got = of(tmp_path, files.maxtext(range(5)))
    rows = got.rows["steps"]
    assert [row["step"] for row in rows] == list(range(5))
    assert {row["dur_ns"] for row in rows} == {2 * S} and {row["attempt"] for row in rows} == {0}
    assert [row["start_ns"] for row in rows] == [BEGUN_NS + 2 * n * S for n in range(5)]
    assert {row["model_flops_per_chip"] for row in rows} == {400e12}
    assert {row["tokens_per_s_per_chip"] for row in rows} == {4096}
    assert rows[3]["loss"] == pytest.approx(9.97) and {row["host"] for row in rows} == {None}
    assert {row["format"] for row in rows} == {"tensorboard"} and [row["order"] for row in rows] == list(range(5))


def test_a_file_of_one_rank_says_whose_it_is(tmp_path):
    for folder, host in (
        ("tb/20260304-0506/rank_3", "rank_3"),
        ("tb/replica_1/rank_3", "rank_3"),
        ("runs/ranking", None),
    ):
        got = of(tmp_path, files.maxtext(range(2)), str(Path(folder) / NAME))
        assert got.column("steps", "host") == [host, host]
