"""From `make run` to a first insight about one's own job: at most three clicks, and nothing typed.

Each number that a page says is worked out here once more, from the file alone.
"""

import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.serving import environment, serving
from tests.bundled import demo_store
from tests.collectors.serving_files import percentile, statistics_ms
from tests.collectors.test_megatron import ARGUMENTS, EVERY, START, new

MOST = 3  # clicks to an insight
H100 = 989.4e12  # FLOP/s, dense bf16, as NVIDIA states it
LOOP = """
import json, time
import jax, jax.numpy as jnp

@jax.jit
def train_step(weights, batch):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(weights)
    return loss, weights - 0.1 * gradient

weights, batch = jnp.ones((256, 256)), jnp.ones((128, 256))
loss, weights = train_step(weights, batch)
jax.block_until_ready(weights)
slept = 0.0
with jax.profiler.trace("profile"):
    began = time.perf_counter()
    for step in range(8):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            before = time.perf_counter()
            time.sleep(0.05)  # what a slow loop does between two steps, as a profile shows it
            slept += time.perf_counter() - before
            loss, weights = train_step(weights, batch)
            jax.block_until_ready(weights)
    whole = time.perf_counter() - began
print(json.dumps(slept / whole))
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The dashboard as `make run` opens it: the bundled runs are there, none of one's own."""
    with serving(demo_store(tmp_path_factory), verb="demo") as address:
        yield address


class Person:
    """Somebody who has just opened the dashboard; `clicks` counts what they do."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def adds(self, button: str, path: Path) -> None:
        """A click on the button; what is chosen in the window that the browser then opens is part of it."""
        with self.page.expect_file_chooser() as chooser:
            self.click(self.page.get_by_role("button", name=button))
        chooser.value.set_files(path)
        expect(self.page).to_have_url(re.compile(r"[?&]run=[0-9a-f]+"))

    def click(self, what) -> None:
        what.click()
        self.clicks += 1

    def reads(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()
        assert self.clicks <= MOST


def test_a_profile_of_an_own_loop_in_jax_tells_what_its_chips_waited_for(visit, started, tmp_path):
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-c", LOOP],
        cwd=tmp_path,
        env=environment(JAX_PLATFORMS="cpu"),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    person = Person(visit(started))
    person.adds("Choose a folder", tmp_path / "profile")
    person.reads("Devices wait while hosts run code of their own, ")
    said = person.page.locator("h5").first.inner_text()
    told = re.search(r" % of it in sleep: (\d+) % of the chip time\. Mending it gives back", said)
    assert told, said
    share = float(told[1])
    assert share == pytest.approx(100 * json.loads(done.stdout), abs=6), "what the loop slept, by its own clock"
    assert person.clicks == 1, "what ran on a CPU is not asked for a chip"


def a_load_test(requests: int = 120) -> dict:
    """What `vllm bench serve --save-result` writes: sums alone, of requests that were drawn here."""
    rng = random.Random(3)
    first = [rng.uniform(0.05, 0.4) for _ in range(requests)]
    gaps = [[rng.uniform(0.01, 0.03) for _ in range(rng.randint(49, 199))] for _ in range(requests)]
    whole = [f + sum(g) for f, g in zip(first, gaps, strict=True)]
    written = sum(len(g) + 1 for g in gaps)
    return {
        "date": "20260425-184718",
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": requests,
        "request_rate": 4.0,
        "burstiness": 1.0,
        "max_concurrency": None,
        "duration": 35.7,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": 66_000,
        "total_output_tokens": written,
        "request_throughput": requests / 35.7,
        "output_throughput": written / 35.7,
        "total_token_throughput": (66_000 + written) / 35.7,
        **statistics_ms(first, "ttft"),
        **statistics_ms([sum(g) / len(g) for g in gaps], "tpot"),
        **statistics_ms([gap for g in gaps for gap in g], "itl"),
        **statistics_ms(whole, "e2el"),
        "ttfts_drawn": first,
    }


def test_a_result_of_vllm_alone_tells_what_its_users_waited_for(visit, started, tmp_path):
    result = a_load_test()
    first = result.pop("ttfts_drawn")
    path = tmp_path / "llama-4qps.json"
    path.write_text(json.dumps(result))
    person = Person(visit(started))
    person.adds("Choose files", path)
    half, most = (1e3 * percentile(first, p) for p in (50, 99))
    person.reads(f"had their first token within {half:.0f} ms, one in a hundred waited longer than {most:.0f} ms.")
    answered = result["completed"] / result["duration"]
    person.reads(f"{answered:.2f} requests/s answered of {result['request_rate']:.2f} asked")
    person.click(person.page.get_by_role("link", name="Open Latency"))
    person.reads(f"Tokens then came every {result['median_tpot_ms']:.1f} ms")
    expect(person.page).to_have_url(re.compile(r"/latency\?run="))


def mfu_of(text: str) -> float:
    """By the arguments and the times of all lines but the first: 6 FLOPs for each weight that multiplies, and causal
    attention, of each token."""
    a = ARGUMENTS
    hidden, head, layers, tokens = a["hidden_size"], a["kv_channels"], a["num_layers"], a["seq_length"]
    attention = 2 * hidden * hidden + 2 * hidden * head * a["num_query_groups"]
    weights = layers * (attention + 3 * hidden * a["ffn_hidden_size"]) + a["vocab_size"] * hidden
    flops = 6 * weights + 6 * layers * hidden * tokens
    step_s = statistics.fmean(float(ms) / 1e3 for ms in re.findall(r"per iteration \(ms\): ([\d.]+)", text)[1:])
    return flops * tokens * a["global_batch_size"] / (a["world_size"] * step_s * H100)


def test_a_log_of_megatron_tells_its_mfu_after_one_answer(visit, started, tmp_path):
    rng = random.Random(5)
    lines = [new(17 * (n + 1), n + 1, 16_850 + rng.uniform(-50, 50), 400.0) for n in range(40)]
    text = EVERY + START + "".join(lines)
    path = tmp_path / "slurm-4711.out"
    path.write_text(text)
    person = Person(visit(started))
    person.adds("Choose files", path)
    person.reads("of 11 min 20 s went into steps that were kept")  # 40 lines, 17 s apart
    person.reads("400 TFLOP/s a device is 40 % of its peak")
    person.click(person.page.get_by_role("button", name="H100 SXM", exact=True))
    share = f"{100 * mfu_of(text):.1f} % of the chips' peak"
    person.reads("Now told: MFU.")
    person.reads(share)
    person.click(person.page.get_by_role("link", name="Open MFU"))
    person.reads(f"Usual steps turn {share} into useful maths")


def test_what_is_told_already_stays_on_the_overview_where_the_ledger_tells_little(visit, started, tmp_path):
    result = a_load_test(60)
    result.pop("ttfts_drawn")
    path = tmp_path / "skipped.json"
    path.write_text(json.dumps(result))
    person = Person(visit(started))
    person.adds("Choose files", path)
    person.click(person.page.get_by_role("button", name="Skip"))
    expect(person.page).to_have_url(re.compile(r"/findings\?run="))
    person.reads(f"had their first token within {result['median_ttft_ms']:.0f} ms")
