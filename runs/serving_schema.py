"""The tables of serving runs: requests, loads of a load test, and what an engine says of itself. See `runs.schema`."""

import pyarrow as pa

from runs.columns import INT, REAL, SOURCE, TEXT, Column, TableSchema

STARTED = "server_started"
"""Name in `scalars`: when a server that had served was started anew, as its log tells, s since the epoch."""
STARTING = "server_start_s"
"""Name in `scalars`: how long a server took from its start until it listened, as its log tells, s; of starts that took
longer than LONG_START_S."""
LONG_START_S = 600.0  # large models take some minutes to load
SERVING_TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "requests",
        "a request: served, failed, or (in a trace of traffic) only asked for",
        (
            Column("id", pa.string(), "request identifier"),
            Column("stage", TEXT, "the load that it was part of (key of `stages`); null where the run is one load"),
            Column("replica", TEXT, "engine or replica that served it, if known"),
            Column("tenant", TEXT, "who asked: user, tenant or class of traffic, if known"),
            Column("arrival_ns", INT, "sent or arrived, ns since the epoch; null where only durations are known"),
            Column("scheduled_ns", INT, "first scheduled, ns since the epoch"),
            Column("first_token_ns", INT, "first token, ns since the epoch"),
            Column("last_token_ns", INT, "last token, ns since the epoch"),
            Column("ttft_ns", INT, "arrival to first token, ns, where the input states it instead of times of day"),
            Column("e2e_ns", INT, "arrival to last token, ns, where the input states it instead of times of day"),
            Column("prompt_tokens", INT, "prompt tokens"),
            Column("cached_tokens", INT, "prompt tokens found in the prefix cache"),
            Column("output_tokens", INT, "tokens generated"),
            Column(
                "gaps_ns", pa.list_(INT), "time between successive pieces of output, ns; a piece may be several tokens"
            ),
            Column("preemptions", INT, "how often it was put back into the queue after it had begun"),
            Column("accepted", INT, "draft tokens accepted"),
            Column("drafted", INT, "draft tokens proposed"),
            Column(
                "hash_ids", pa.list_(INT), "identity of each block of its prompt, in order: equal prefixes, equal ids"
            ),
            Column(
                "status",
                TEXT,
                "completed, failed, aborted, or cut_off (it still ran when the load ended, at last_token_ns); null: "
                "nobody served it (a trace of traffic)",
            ),
            Column("error", pa.string(), "why it failed, as written, its first 500 characters"),
            SOURCE,
        ),
    ),
    TableSchema(
        "stages",
        "one load of a load test, as the tool summed it up",
        (
            Column("stage", TEXT, "its name, unique in the run"),
            Column("tool", TEXT, "the collector that read it"),
            Column("order", INT, "position in its input, from 0"),
            Column("start_ns", INT, "start, ns since the epoch"),
            Column("duration_s", REAL, "from the first request to the last answer, s"),
            Column("requested_rate_per_s", REAL, "requests per second that were to be sent; infinite: all at once"),
            Column("max_concurrency", INT, "most requests in flight that the tool allowed"),
            Column("completed", INT, "requests answered"),
            Column("failed", INT, "requests that failed"),
            Column("input_tokens", INT, "prompt tokens of the answered requests"),
            Column("output_tokens", INT, "tokens generated in the answered requests"),
            Column("request_rate_per_s", REAL, "requests answered per second"),
            Column("goodput_per_s", REAL, "requests per second that kept the tool's own objectives"),
            Column("output_tokens_per_s", REAL, "tokens generated per second"),
            Column("total_tokens_per_s", REAL, "prompt and generated tokens per second"),
            Column("peak_output_tokens_per_s", REAL, "most tokens generated in any one second"),
            Column("peak_concurrency", REAL, "most requests in flight"),
            Column("outcome", TEXT, "measured; or `failed` where no request was answered: its latencies mean nothing"),
            SOURCE,
        ),
    ),
    TableSchema(
        "stage_stats",
        "a statistic that a tool printed for one load",
        (
            Column("stage", TEXT, "the load (key of `stages`)"),
            Column("metric", TEXT, "of what, see STAGE_METRICS"),
            Column("statistic", TEXT, "mean, p50 (the median), p99 ..., std, min, max, total, or per_position_0 ..."),
            Column("value", REAL, "its value, in the metric's unit"),
        ),
    ),
    TableSchema(
        "engine",
        "a sample of a serving engine's counters",
        (
            Column("ts_ns", INT, "time, ns since the epoch; null where a log gives none"),
            Column("order", INT, "position in its input, from 0"),
            Column("replica", TEXT, "engine or replica, if it says which"),
            Column("running", INT, "requests running"),
            Column("waiting", INT, "requests waiting"),
            Column("kv_usage", REAL, "share of the KV cache in use, 0 to 1"),
            Column("prefix_hits", INT, "prompt tokens found in the prefix cache so far"),
            Column("prefix_queries", INT, "prompt tokens looked up in the prefix cache so far"),
            Column("prefix_hit_rate", REAL, "share of looked-up prompt tokens found, 0 to 1, as a log prints it"),
            Column("prompt_tokens", INT, "prompt tokens processed so far"),
            Column("computed_tokens", INT, "those of them that no cache held, where an engine counts them apart"),
            Column("output_tokens", INT, "tokens generated so far"),
            Column("prompt_tokens_per_s", REAL, "prompt tokens per second since the sample before, as a log prints it"),
            Column(
                "output_tokens_per_s", REAL, "generated tokens per second since the sample before, as a log prints it"
            ),
            Column("preemptions", INT, "preemptions so far"),
            Column("drafts", INT, "times that a draft was proposed so far"),
            Column("drafted", INT, "draft tokens proposed so far"),
            Column("accepted", INT, "draft tokens accepted so far"),
            Column(
                "accepted_per_position", pa.list_(REAL), "draft tokens accepted so far at each position of the draft"
            ),
            Column("acceptance_length", REAL, "tokens per draft and step, the sure one included, as a log prints it"),
            Column(
                "acceptance_per_position", pa.list_(REAL), "share accepted at each position since the sample before"
            ),
            SOURCE,
        ),
    ),
    TableSchema(
        "iterations",
        "one iteration of a serving engine: one forward pass of its batch",
        (
            Column("order", INT, "number of the iteration, from 0"),
            Column("replica", TEXT, "engine or replica, if it says which"),
            Column("start_ns", INT, "start, ns since the epoch"),
            Column("dur_ns", INT, "duration, ns, scheduling included"),
            Column("device_ns", INT, "the part of it in which the device computed, ns; null where not told"),
            Column("prefill_requests", INT, "requests in it that still read their prompt"),
            Column("prefill_tokens", INT, "prompt tokens computed in it"),
            Column("recomputed_tokens", INT, "those of them that had been computed before a preemption"),
            Column("decode_requests", INT, "requests in it that generated"),
            Column("decode_tokens", INT, "tokens generated and kept"),
            Column("drafted_tokens", INT, "draft tokens verified in it"),
            Column("accepted_tokens", INT, "those of them that were kept"),
            Column("padded_tokens", INT, "tokens that only filled up a compiled shape"),
            Column("kv_usage", REAL, "share of the KV cache in use, 0 to 1"),
            Column("running", INT, "requests running"),
            Column("waiting", INT, "requests waiting"),
            Column("preempted", INT, "requests put back into the queue in it"),
            SOURCE,
        ),
    ),
    TableSchema(
        "histograms",
        "one bucket of a histogram at one scrape",
        (
            Column("ts_ns", INT, "time of the scrape, ns since the epoch; null where the text gives none"),
            Column("order", INT, "number of the scrape in its input, from 0"),
            Column("replica", TEXT, "engine or replica, if it says which"),
            Column("name", TEXT, "name of the metric as it was exposed"),
            Column("le", REAL, "upper bound of the bucket, in the metric's unit; infinite for the last"),
            Column("count", INT, "observations up to that bound, so far"),
            Column("total", REAL, "sum of all observations so far, the same in each bucket of a scrape"),
            SOURCE,
        ),
    ),
)

STAGE_METRICS: dict[str, str] = {
    "ttft": "time to first token, s",
    "tpot": "time per output token after the first, of one request, s",
    "itl": "time between successive pieces of output, s",
    "e2e": "arrival to last token, s",
    "queue": "arrival to being scheduled, or waiting in the client, s",
    "prefill": "being scheduled to first token, s",
    "decode": "first to last token, s",
    "normalized_tpot": "arrival to last token by tokens generated, s",
    "schedule_delay": "how much later than planned the client sent, s",
    "prompt_tokens": "prompt tokens of a request",
    "output_tokens": "tokens generated in a request",
    "output_tokens_per_s": "tokens per second of one request",
    "request_rate_per_s": "requests per second",
    "to_send": "requests that were to be sent, where how many failed is not told",
    "concurrency": "requests in flight",
    "acceptance_rate": "share of draft tokens accepted, 0 to 1",
    "acceptance_length": "tokens per draft and step, the sure one included",
    "drafts": "times that a draft was proposed",
    "drafted_tokens": "draft tokens proposed",
    "accepted_tokens": "draft tokens accepted",
    "slo_attainment": "share of requests that kept the tool's own objectives, 0 to 1",
    "kv_usage": "share of the KV cache in use, 0 to 1",
    "queue_length": "requests waiting in the engine",
}
