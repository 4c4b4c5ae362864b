"""From a log to its goodput in one process, and what each part took: what `benchmarks.goodput` runs and times.

    python -m benchmarks.goodput_answer LOG RULES

Prints JSON: seconds of `import`, `read` and `answer`, and `share`, the goodput as a share of the job's time, 0 to 1.
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path


def main(log: str, rules: str) -> None:
    begin = time.perf_counter()
    import pyarrow as pa

    from analyzers.lost import goodput
    from collectors.base import Rows, Source
    from collectors.training import goodput_log
    from runs.tables import MemoryTables

    imported = time.perf_counter()
    batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for item in goodput_log.read(Source(Path(log), "log")):
        if isinstance(item, Rows):
            batches[item.table].append(item.batch)
    columns = {}
    for name, some in batches.items():
        table = pa.Table.from_batches(some).unify_dictionaries().combine_chunks()
        columns[name] = {field: table[field].chunk(0) for field in table.column_names}
    tables = MemoryTables(columns)
    read = time.perf_counter()
    share = goodput.analyze(tables, {}, {"rules": rules}).to_dict()["goodput_share"]
    took = {"import": imported - begin, "read": read - imported, "answer": time.perf_counter() - read}
    print(json.dumps({**took, "share": share}))


if __name__ == "__main__":
    main(*sys.argv[1:])
