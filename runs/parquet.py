"""How each table is written: the Parquet settings that keep ingest fast and files small."""

from typing import Any

PARQUET_DEFAULTS: dict[str, Any] = {"compression": "zstd", "compression_level": 1}


def parquet_options(table: str) -> dict[str, Any]:
    """Keyword arguments of `pyarrow.parquet.ParquetWriter` for this table."""
    return PARQUET_DEFAULTS
