"""Questions in SQL to begin with: those are offered whose tables the run holds."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """`tables`: all that its SQL reads."""

    label: str
    tables: tuple[str, ...]
    sql: str


EXAMPLES = (
    Example(
        "Longest steps",
        ("steps",),
        """select attempt, step, host, dur_ns / 1e9 as seconds, loss
from steps
where dur_ns is not null
order by dur_ns desc
limit 20""",
    ),
    Example(
        "What the job's life held",
        ("lifecycle",),
        """select kind, count(*) as times, sum(end_ns - start_ns) / 1e9 as seconds
from lifecycle
group by kind
order by seconds desc nulls last""",
    ),
    Example(
        "Operations by their own time",
        ("ops",),
        """select category, op, sum(count) as executions, sum(self_ns) / 1e6 as self_ms
from ops
where device is not null
group by category, op
order by self_ms desc nulls last
limit 50""",
    ),
    Example(
        "Lines of one's own code by what they allocated",
        ("allocations", "stacks"),
        """with own as (
    select capture, stack, arg_min(file, depth) as file, arg_min(line, depth) as line
    from stacks
    where kind = 'own'
    group by capture, stack
)
select file, line, count(*) as blocks, sum(bytes) / 1e9 as allocated_gb
from allocations left join own using (capture, stack)
group by file, line
order by allocated_gb desc
limit 50""",
    ),
    Example(
        "Statistics of events",
        ("event_stats",),
        """select
    name,
    count(*) as events,
    min(coalesce(float_value, int_value)) as least,
    avg(coalesce(float_value, int_value)) as mean,
    max(coalesce(float_value, int_value)) as most,
    any_value(text_value) as some_text
from event_stats
group by name
order by events desc""",
    ),
    Example(
        "Longest events, with their statistics",
        ("op_events", "ops", "event_stats"),
        """with longest as (
    select e.capture, e.event, o.op, o.host, e.dur_ps / 1e9 as ms
    from op_events e join ops o using (capture, op_id)
    where e.device is not null
    order by e.dur_ps desc
    limit 20
)
select any_value(op) as op, any_value(host) as host, any_value(ms) as ms,
    list(name || '=' || coalesce(text_value, cast(int_value as varchar), cast(float_value as varchar))) as statistics
from longest left join event_stats s using (capture, event)
group by capture, event
order by ms desc""",
    ),
    Example(
        "Scalars of the job",
        ("scalars",),
        """select name, unit, count(*) as samples, min(value) as least, avg(value) as mean, max(value) as most,
    arg_max(value, coalesce(step, ts_ns)) as latest
from scalars
group by name, unit
order by name""",
    ),
    Example(
        "Histograms at their last scrape",
        ("histograms",),
        """select replica, name, le, count
from histograms
qualify ts_ns = max(ts_ns) over (partition by replica, name)
order by replica, name, le""",
    ),
    Example(
        "Collectives by kind and host",
        ("collectives",),
        """select kind, host, count(*) as parts, sum(end_ns - start_ns) / 1e6 as ms, sum(bytes) / 1e9 as gigabytes
from collectives
group by kind, host
order by ms desc""",
    ),
    Example(
        "Lines of logs by cause",
        ("evidence",),
        """select cause, severity, count(*) as lines, any_value(text) as such_as
from evidence
group by cause, severity
order by lines desc""",
    ),
    Example(
        "Matrix products of the programs",
        ("matmuls",),
        """select module, m, k, n, batch, dtype, sum(count) as executions
from matmuls
group by module, m, k, n, batch, dtype
order by 2.0 * m * k * n * coalesce(batch, 1) * executions desc nulls last
limit 50""",
    ),
    Example(
        "Collectives of the programs",
        ("program_collectives",),
        """select module, kind, axis, sum(count) as executions, sum(bytes * count) / 1e9 as gigabytes
from program_collectives
group by module, kind, axis
order by gigabytes desc nulls last""",
    ),
    Example(
        "Requests by tenant",
        ("requests",),
        """select tenant, status, count(*) as requests, median(prompt_tokens) as prompt_tokens,
    median(output_tokens) as output_tokens,
    quantile_cont(coalesce(ttft_ns, first_token_ns - arrival_ns) / 1e9, 0.99) as p99_ttft_s
from requests
group by tenant, status
order by requests desc""",
    ),
    Example(
        "Loads of the test",
        ("stages", "stage_stats"),
        """select s.stage, s.completed, s.failed, s.output_tokens_per_s, t.metric, t.statistic, t.value
from stages s join stage_stats t using (stage)
order by s."order", t.metric, t.statistic""",
    ),
    Example(
        "The engine's passes by size",
        ("iterations",),
        """select decode_requests, prefill_tokens > 0 as with_prefill, count(*) as passes, median(dur_ns) / 1e6 as ms
from iterations
group by decode_requests, with_prefill
order by decode_requests, with_prefill""",
    ),
)


def fitting(held: Mapping[str, int]) -> list[Example]:
    """The examples of which every table has rows; `held`: rows by table."""
    return [e for e in EXAMPLES if all(held.get(t) for t in e.tables)]
