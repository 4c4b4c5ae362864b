"""Scrapes of metrics, written and read."""

from collectors.serving import prometheus
from tests.collectors.reading import read, source_of

WHO = '{engine="0",model_name="llama"}'
SGLANG = """# HELP sglang:num_running_reqs The number of running requests
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="qwen",tp_rank="0"} 162.0
sglang:num_running_reqs{model_name="qwen",tp_rank="1"} 162.0
sglang:num_queue_reqs{model_name="qwen"} 2826.0
sglang:token_usage{model_name="qwen"} 0.28
sglang:cache_hit_rate{model_name="qwen"} 0.0075
sglang:gen_throughput{model_name="qwen"} 86.5
sglang:prompt_tokens_total{model_name="qwen"} 8.128902e+06
sglang:cached_tokens_total{model_name="qwen"} 4000.0
sglang:generation_tokens_total{model_name="qwen"} 7.557572e+06
sglang:max_total_num_tokens{model_name="qwen"} 454097.0
sglang:per_stage_req_latency_seconds_bucket{le="1.0",model_name="qwen",stage="prefill"} 5.0
sglang:per_stage_req_latency_seconds_bucket{le="+Inf",model_name="qwen",stage="prefill"} 6.0
sglang:per_stage_req_latency_seconds_bucket{le="1.0",model_name="qwen",stage="decode"} 1.0
sglang:per_stage_req_latency_seconds_bucket{le="+Inf",model_name="qwen",stage="decode"} 9.0
"""


def metrics(tmp_path, text, name="metrics.prom"):
    return read(prometheus, source_of(tmp_path, text, name))


def engine(got) -> list[dict]:
    return [{k: v for k, v in row.items() if v is not None and k != "source"} for row in got.rows["engine"]]
