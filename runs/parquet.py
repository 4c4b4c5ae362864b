"""How each table is written: the Parquet settings that keep ingest fast and files small."""

from typing import Any

PARQUET_DEFAULTS: dict[str, Any] = {"compression": "zstd", "compression_level": 1}

# The tables of a trace have millions of rows. Hashing their numbers for a dictionary that is given up again would cost
# more than all else together, and pages of the usual 20,000 rows more and larger files. Statistics are kept where a
# query may skip row groups by them.
_LARGE: dict[str, Any] = {"max_rows_per_page": 1 << 18, "write_batch_size": 1 << 18}
PARQUET_OPTIONS: dict[str, dict[str, Any]] = {
    "op_events": {
        **_LARGE,
        "use_dictionary": False,
        "column_encoding": {
            "event": "BYTE_STREAM_SPLIT",
            "device": "BYTE_STREAM_SPLIT",
            "op_id": "BYTE_STREAM_SPLIT",
            "start_ps": "BYTE_STREAM_SPLIT",
            "dur_ps": "BYTE_STREAM_SPLIT",
        },
        "write_statistics": ["capture", "event", "device", "op_id", "start_ps"],
    },
    "event_stats": {
        **_LARGE,
        "use_dictionary": ["name", "text_value"],
        "column_encoding": {"event": "DELTA_BINARY_PACKED", "int_value": "BYTE_STREAM_SPLIT"},
        "write_statistics": ["capture", "event"],
    },
}


def parquet_options(table: str) -> dict[str, Any]:
    """Keyword arguments of `pyarrow.parquet.ParquetWriter` for this table."""
    return PARQUET_DEFAULTS | PARQUET_OPTIONS.get(table, {})
