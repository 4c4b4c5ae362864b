"""Whatever bytes the readers of metrics and traces meet: rows of their tables, or a sentence of what is wrong."""

import gzip

import pytest

from collectors.device import chakra, cloud_monitoring, dcgm, nvidia_smi, ray_timeline, tpu_info
from collectors.serving import prometheus, prometheus_json, request_trace
from tests.app.metrics_server import exposition
from tests.collectors import test_chakra, test_cloud_monitoring, test_nvidia_smi, test_ray_timeline
from tests.collectors.test_dcgm import GPUS
from tests.collectors.test_prometheus import SGLANG
from tests.collectors.test_prometheus_json import ANSWERS
from tests.collectors.test_request_trace import AZURE, BURSTGPT, MOONCAKE
from tests.collectors.test_tpu_info import BOXED, TABLES
from tests.fuzz.damage import checks_of, survive

VALID = {
    prometheus: [
        f"# scraped_at 1700000000.5\n{exposition(3)}# no_answer 1700000005 gone\n1700000010\n{exposition(9)}".encode(),
        SGLANG.encode(),
        b'a_bucket{le="1",x="\\"}"} 1 1700000000000 # {t="1"} 2\na_bucket{le="+Inf"} 2 1700000000.5\n# EOF\n'
        b'vllm:cache_config_info{block_size="16",num_gpu_blocks="9"} 1\n',
    ],
    dcgm: [GPUS.encode()],
    nvidia_smi: [test_nvidia_smi.QUERIED.encode(), test_nvidia_smi.DMON.encode()],
    prometheus_json: [answer.encode() for answer in ANSWERS],
    tpu_info: [
        f"Last update: 2025-07-24 11:00:59 UTC\n{TABLES}{BOXED}".encode(),
        b"TPU_0(process=0) {'num_allocs': 3, 'bytes_in_use': 12, 'bytes_limit': 100}\n1 {'bytes_in_use': 3}\n",
        b'{"time": 1700000000.5, "devices": [{"id": 3, "memory_stats": {"bytes_in_use": 7, "bytes_limit": 9}}]}\n',
    ],
    cloud_monitoring: test_cloud_monitoring.VALID,
    ray_timeline: test_ray_timeline.VALID,
    chakra: test_chakra.VALID,
    request_trace: [
        AZURE.encode(),
        MOONCAKE.encode(),
        BURSTGPT.encode(),
        b"id,timestamp_ms,user,input_tokens,output_tokens,ttft_ms,latency_s,status\na,1,x,5,6,7,8,ok\nb,2,y,5,6,,,failed\n",
    ],
}
NAME = "readings.txt"  # of the input
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)
NOISE = (
    b'{"bytes_in_use":' * 100_000,
    b'a{b="' * 50_000,
    b'{"timeSeries":[{"metric":{"type":"a.com/b"},"points":[' * 10_000,
    b'[{"metric":{"type":"a.com/b"},"points":[' + b'{"value":{"doubleValue":1},' * 20_000,
    b"x" + b" " * 100_000 + b"y\n",
    b'[{"metric":{' + b'"a":"b",' * 50_000 + b'"c":"d"},"values":[[1,"2"]]}]',
    b'"metric":{' * 20_000,
    b"x =>\n" * 20_000 + b"1 @[1]\n" * 20_000,
    b"a{" + b'b="c",' * 50_000 + b"\n",
    b'a{b="c"' + b" " * 100_000 + b"\n",
    b"TPU Chips" + b"\n" * 100_000,
    b"1" + b" " * 100_000 + b"bytes_in_use",
    b"timestamp,input_tokens" + b",x" * 10_000 + b"\n1,2\n",
)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=200, noises=100
)


@READERS
def test_a_line_without_end_is_refused_in_bounded_memory(reader, tmp_path):
    survive(reader, tmp_path, gzip.compress(VALID[reader][0] + b" " * (80 << 20), 1), NAME)
