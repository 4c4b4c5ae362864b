"""Layouts in the words of frameworks, read back: degrees multiply to the chips, sizes to the batch."""

import re
import tomllib
from dataclasses import replace
from math import prod

import yaml

from catalog import chip, model
from simulators.training.configs import Cannot, Job, maxtext, megatron, torchtitan
from simulators.training.layout import tensors
from simulators.training.plan import plan

JOBS = [
    ("llama3.1-70b", "h100", 1024, 512, 8192, 8),
    ("llama3.1-405b", "h100", 4096, 2048, 8192, 8),
    ("deepseek3-671b", "h800", 2048, 1024, 4096, 8),
    ("llama3.1-8b", "v6e", 256, 512, 8192, 256),
    ("llama3.1-70b", "7x", 512, 512, 8192, 512),
]


def jobs():
    for of, on, chips, batch, seq, group in JOBS:
        for found in plan(model(of), chip(on), chips, batch, seq, most=6).layouts:
            yield Job(
                model=model(of),
                layout=found.layout,
                chips=chips,
                group=group,
                batch=batch,
                seq=seq,
                precision="bf16",
                recomputed=found.recomputed,
                devices_per_chip=int(chip(on).value("jax_devices_per_chip")),
            )


ALL = list(jobs())


def job(**more):
    return replace(ALL[0], **more)


ALIKE = [one for one in ALL if one.chunks <= one.model.layers]  # pieces of a pipeline that layers fill


def test_maxtext_refuses_pieces_of_a_pipeline_that_layers_do_not_fill():
    refused = [maxtext(one) for one in ALL if one not in ALIKE]
    assert refused and all("pieces of a pipeline" in one.why for one in refused)


def test_maxtext_has_all_devices_and_the_whole_batch():
    for one in ALIKE:
        read = yaml.safe_load(maxtext(one))
        axes = {k: v for k, v in read.items() if k.startswith(("ici_", "dcn_"))}
        inside = prod(v for k, v in axes.items() if k.startswith("ici_"))
        devices = one.chips * one.devices_per_chip
        assert prod(axes.values()) == devices and inside == min(one.group, one.chips) * one.devices_per_chip
        assert read["per_device_batch_size"] * devices * read["gradient_accumulation_steps"] == one.batch
        assert (read["max_target_length"], read["model_name"]) == (one.seq, one.model.name)
        assert read.get("shard_optimizer_over_data", False) == (one.axis("dp") > 1)
        stages = axes["ici_pipeline_parallelism"] * axes["dcn_pipeline_parallelism"]
        assert stages == one.axis("pp")
        if stages > 1:
            layers = read["num_layers_per_pipeline_stage"] * read["num_pipeline_repeats"] * stages
            assert layers == read.get("pipeline_parallel_layers", one.model.layers) <= one.model.layers
            assert read["num_pipeline_microbatches"] * one.replicas * one.axis("micro") == one.batch


def test_the_tensor_axis_is_never_cut_between_groups_where_it_fits_in_one():
    for one in ALIKE:
        read = yaml.safe_load(maxtext(one))
        assert read["dcn_tensor_parallelism"] == 1
        assert read["ici_tensor_parallelism"] in tensors(one.model, 128)


def test_megatron_has_the_whole_world():
    for one in ALL:
        text = megatron(one)
        given = dict(re.findall(r"--([a-z0-9-]+) (\d+)", text))
        cut = [
            int(given[f"{n}-size"]) for n in ("tensor-model-parallel", "pipeline-model-parallel", "context-parallel")
        ]
        world = int(given["nnodes"]) * int(given["nproc-per-node"])
        assert world == one.chips and world % prod(cut) == 0
        copies = world // prod(cut)
        assert copies == one.replicas and f"{copies:,} copies" in text
        micro, batch = int(given["micro-batch-size"]), int(given["global-batch-size"])
        assert batch == one.batch and batch % (micro * copies) == 0
        assert int(given.get("num-virtual-stages-per-pipeline-rank", 1)) == one.axis("vp")
        assert copies % int(given.get("expert-model-parallel-size", 1)) == 0
        assert ("--sequence-parallel" in text) == (one.axis("tp") > 1)
        assert ("--use-megatron-fsdp" in text) == (one.axis("fsdp") > 1)
        dealt_out = "--outer-dp-sharding-strategy optim" in text or "--use-distributed-optimizer" in text
        assert dealt_out or one.axis("dp") == 1  # the optimiser's state, over all copies, as memory is counted


def test_torchtitan_has_all_ranks_and_the_whole_batch():
    for one in ALL:
        read = tomllib.loads(torchtitan(one))
        axes = read["parallelism"]
        shards = axes["data_parallel_replicate_degree"] * axes["data_parallel_shard_degree"]
        inner = ("tensor_parallel_degree", "pipeline_parallel_degree", "context_parallel_degree")
        assert shards * prod(axes[n] for n in inner) == one.chips
        assert axes["data_parallel_shard_degree"] % axes["expert_parallel_degree"] == 0
        training = read["training"]
        accumulated = training["global_batch_size"] / (training["local_batch_size"] * shards)
        assert training["global_batch_size"] == one.batch and accumulated == int(accumulated)
        assert ("GB a chip more than planned" in torchtitan(one)) == (one.axis("dp") > 1)
        if one.axis("pp") > 1:
            micro = axes["pipeline_parallel_microbatch_size"]
            assert accumulated == 1 and training["local_batch_size"] // micro == one.microbatches


def test_what_is_computed_again_is_told_in_each_ones_words():
    none, some, all_ = (job(recomputed=r) for r in (0.0, 0.34, 1.0))
    policies = [yaml.safe_load(maxtext(one))["remat_policy"] for one in (none, some, all_)]
    assert policies == ["minimal", "save_qkv_proj", "full"]
    modes = [tomllib.loads(torchtitan(one))["activation_checkpoint"] for one in (none, some, all_)]
    assert modes == [{"mode": "none"}, {"mode": "selective", "selective_ac_option": "3"}, {"mode": "full"}]
    flags = [re.findall(r"--recompute-method (\w+)", megatron(one)) for one in (none, some, all_)]
    assert flags == [[], ["block"], ["uniform"]]


def test_what_a_framework_cannot_is_said():
    assert isinstance(maxtext(job(precision="fp4")), Cannot) and isinstance(torchtitan(job(precision="fp16")), Cannot)
    assert "--fp4-format" in megatron(job(precision="fp4")) and "--fp16" in megatron(job(precision="fp16"))
    lone = {**ALL[0].layout, "dp": 3, "fsdp": 1, "tp": 1, "pp": 1, "vp": 1, "cp": 1, "ep": 1}
    told = maxtext(job(layout=lone, chips=3, group=2))
    assert isinstance(told, Cannot) and "groups of 2 chips" in told.why


def test_a_chip_of_two_devices_deals_its_sequences_to_them_or_cuts_its_heads():
    fsdp = replace(ALL[-1], layout={**ALL[-1].layout, "micro": 2})
    heads = replace(ALL[-1], layout={**ALL[-1].layout, "micro": 1})
    assert (fsdp.devices_axis, heads.devices_axis) == ("fsdp", "tensor")
