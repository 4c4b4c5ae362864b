"""Small files of rocmProfileData, written by hand as it writes them, and what rpd2tracing makes of one."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.collectors.rocm_files import BOOT, write_tables

RPD: Mapping[str, str] = {
    "rocpd_string": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL",
    "rocpd_op": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId integer, queueId integer, sequenceId integer, "
    "start integer, end integer, description_id integer, opType_id integer",
    "rocpd_api": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, pid integer, tid integer, start integer, end integer, "
    "apiName_id integer, args_id integer",
    "rocpd_api_ops": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, api_id integer, op_id integer",
    "rocpd_copyapi": "api_ptr_id integer NOT NULL PRIMARY KEY, stream varchar(18), size integer, kind integer",
    "ext_autogradapi": "api_ptr_id integer NOT NULL PRIMARY KEY, autogradName_id integer, seq integer, op_id integer, "
    "sizes varchar(4096)",
    "ext_callstack": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, parent_id integer, child_id integer",
    "rocpd_monitor": "id integer NOT NULL PRIMARY KEY AUTOINCREMENT, deviceType varchar(16), deviceId integer, "
    "monitorType varchar(16), start integer, end integer, value varchar(255)",
}


class Rpd:
    """What rocmProfileData records."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple]] = {"rocpd_string": [(1, "")]}
        self._strings = {"": 1}

    def put(self, table: str, *values: Any) -> int:
        """Adds a row, numbered as rocmProfileData numbers those of a session."""
        rows = self.rows.setdefault(table, [])
        rows.append(((1 << 32) + len(rows) + 1, *values))
        return rows[-1][0]

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.rows["rocpd_string"].append((self._strings[text], text))
        return self._strings[text]

    def call(self, name: str, start: int, dur: int, args: str = "", tid: int = 908) -> int:
        """A call; its number."""
        return self.put("rocpd_api", 908, tid, start, start + dur, self.string(name), self.string(args))

    def operator(self, name: str, start: int, dur: int, sizes: str = "", seq: Any = "") -> int:
        """A call of an operator of PyTorch; its number."""
        call = self.call("UserMarker", start, dur, name)
        self.rows.setdefault("ext_autogradapi", []).append((call, self.string(name), seq, 1, sizes))
        return call

    def op(self, kind: str, start: int, dur: int, call: int | None = None, name: str = "", gpu=2, queue=0) -> "Rpd":
        """What a device executed."""
        made = self.put("rocpd_op", gpu, queue, 0, start, start + dur, self.string(name), self.string(kind))
        if call is not None:
            self.put("rocpd_api_ops", call, made)
        return self

    def write(self, path: Path, *also: str) -> Path:
        return write_tables(path, RPD, self.rows, *also)


def whole_rpd() -> Rpd:
    """A small profile with something of everything: two steps on one device."""
    made = Rpd()
    for step in range(2):
        at = BOOT + 1_000_000 * (step + 1)
        made.call("UserMarker", at, 900_000, f"step {step + 7}")
        made.operator("aten::mm", at + 3_000, 90_000, "[[8, 4], [4, 2]]", 40 + step)
        made.op("KernelExecution", at + 20_000, 70_000, made.call("hipLaunchKernel", at + 10_000, 5_000), "Cijk_Ailk")
        graph = made.call("hipGraphLaunch", at + 200_000, 20_000)
        for n in range(3):
            made.op("Task", at + 220_000 + 30_000 * n, 20_000, graph, f"rms_norm_kernel{n}")
        copy = made.call("hipMemcpyAsync", at + 500_000, 4_000)
        made.rows.setdefault("rocpd_copyapi", []).append((copy, "0x0", 1 << 20, 1))
        made.op("CopyHostToDevice", at + 505_000, 1_000, copy).op("FillBuffer", at + 510_000, 2_000)
    made.call("ApiTable::writeRows", BOOT + 2_950_000, 9_000, tid=910)
    made.put("ext_callstack", 1, 2)
    made.put("rocpd_monitor", "gpu", 2, "sclk", BOOT + 900_000, BOOT + 950_000, "1700")
    return made


def chrome(made: Rpd, whole: bool = False) -> str:
    """What rpd2tracing makes of it. `whole`: as an object rather than a bare list."""
    texts = dict(made.rows["rocpd_string"])
    out: list[dict[str, Any]] = [{}]
    for gpu in sorted({row[1] for row in made.rows["rocpd_op"]}):
        out.append({"name": "process_name", "ph": "M", "pid": str(gpu), "args": {"name": f"GPU{gpu}"}})
    for pid, tid in sorted({row[1:3] for row in made.rows["rocpd_api"]}):
        out.append({"name": "thread_name", "ph": "M", "pid": str(pid), "tid": str(tid), "args": {"name": f"Hip {tid}"}})

    def event(pid, tid, name, start, end, desc) -> dict[str, Any]:
        times = {"ts": str(start // 1000), "dur": str((end - start) // 1000)}
        return {"pid": str(pid), "tid": str(tid), "name": name, **times, "ph": "X", "args": {"desc": desc}}

    for _, gpu, queue, _, start, end, description, kind in made.rows["rocpd_op"]:
        out.append(event(gpu, queue, texts[description] or texts[kind], start, end, texts[kind]))
    for _, pid, tid, start, end, name, args in made.rows["rocpd_api"]:
        called = texts[args] if texts[name] == "UserMarker" else texts[name]
        out.append(event(pid, tid, called, start, end, texts[args]))
    out.append({"pid": "2", "tid": "0", "name": "Graph 7", "ts": "1", "dur": "9", "ph": "X", "args": {"kernels": "3"}})
    out[-1]["ts"] = str(BOOT // 1000 + 1_220)
    out.append(event(2, 0, "attention", BOOT + 1_000_000, BOOT + 1_500_000, "UserMarker frame: 2 ops"))
    out.append({"pid": "908", "tid": "908", "cat": "api_op", "name": "api_op", "ts": "5", "id": "1", "ph": "s"})
    out.append({"pid": "2", "tid": "0", "cat": "api_op", "name": "api_op", "ts": "6", "id": "1", "ph": "f", "bp": "e"})
    out.append({"pid": "2", "name": "Idle", "ph": "C", "ts": 5, "args": {"idle": 0}})
    text = "[ " + "\n,".join(json.dumps(e, separators=(",", ":")) for e in out) + "\n]\n"
    return f'{{"traceEvents": {text}}}' if whole else text


def rpd_bytes() -> bytes:
    """The same as the file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        return whole_rpd().write(Path(folder) / "made.rpd").read_bytes()
