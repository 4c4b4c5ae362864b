"""What lines of logs look like that tell of a cause: patterns written from the public documentation of drivers,
kernels, schedulers, cloud providers, communication libraries and frameworks.

A pattern sees the line in lower case, and is tried only where one of its needles is in the line. The first rule that
fits wins: what names a part stands before what names a symptom, and that before what only says that an exception was
raised. `GATE` is all of them in one, looser, for RE2, which reads any number of patterns in one pass over the text.
"""

import re
from typing import NamedTuple

# NVIDIA driver messages, by number (docs.nvidia.com/deploy/xid-errors). None: tells of nothing that failed by itself.
XIDS: dict[int, str | None] = {
    **dict.fromkeys((13, 31, 43, 69, 137), "software"),  # faults of the application: bad address, bad instruction
    **dict.fromkeys((48, 57, 58, 63, 64, 92, 94, 95, 140, 156, 157, 160, 161, 171), "hbm"),
    **dict.fromkeys((74, 136, *range(144, 151), 155), "chip_link"),
    **dict.fromkeys((119, 120), "firmware"),
    **dict.fromkeys((61, 62, 79, 80, 109, 110, 143, 158, 167, 169), "accelerator"),
    172: "sram",
    54: "power",  # auxiliary power is not connected
    45: "process_exit",  # the driver cleans up after a process that ended
    **dict.fromkeys((106, 107, 121, 154, 162, 163), None),  # tests, corrected errors, and what sums up another Xid
}

_STORE = (
    r"(?:gs://|s3://|\bgcs\b|\bs3\b|gcsfs|s3fs|gcsfuse|fuse|storage\.googleapis|google\.cloud\.storage|amazonaws"
    r"|botocore|azure|\bblob|tensorstore|orbax|checkpoint|bucket|filestore|lustre|gpfs|\bnfs\b|weka)"
)
_REFUSED = (
    r"(?:(?:http|status|code|error|response)\W{0,3}(?:code\W{0,3})?(?:429|50\d|40[13])\b"
    r"|\b(?:429|50\d|40[13])\b:? (?:too|forbidden|service|internal|bad gateway|gateway|client|server|post|get|put)"
    r"|too many requests|slow ?down|service ?unavailable|rate.?limit|quota exceeded|exceeded .{0,20}quota"
    r"|permission.?denied|access.?denied|accessdenied|forbidden|unauthori[sz]ed|internalerror|backend error)"
)
_GPU_MEMORY = r"(?:hbm|ecc|dram|framebuffer|row.?remap)"


class Rule(NamedTuple):
    """A line fits if one of `needles` is in it and one of `patterns` matches, in lower case. Cause "": see XIDS."""

    cause: str
    needles: tuple[str, ...]
    patterns: tuple[str, ...]


RULES: tuple[Rule, ...] = (
    Rule(
        "device_memory",
        ("out of memory", "out_of_memory", "outofmemory", "exhausted", "alloc_failed"),
        (
            r"cuda[^;]{0,30}out.of.memory",
            r"hip(?:error)?[^;]{0,20}out.?of.?memory",
            r"(?<!java\.lang\.)\boutofmemoryerror",
            r"resource_?exhausted.{0,200}(?:memory|alloc|hbm|vmem)",
            r"ran out of memory (?:in memory space|while|trying)",
            r"(?:_bfc|allocator).{0,40}ran out of memory",
            r"(?:cublas|cudnn)_status_alloc_failed",
            r"out of memory (?:while trying to allocate|allocating|on (?:gpu|device|tpu))",
        ),
    ),
    Rule(
        "host_out_of_memory",
        ("oom", "out of memory", "out_of_memory", "outofmemory", "allocate memory", "bad_alloc", "memory", "bus error"),
        (
            r"\boom[-_ ]?kill(?!_disable)",
            r"oomkill",
            r"out of memory: kill",
            r"memory cgroup out of memory",
            r"cannot allocate memory",
            r"std::bad_alloc",
            r"(?:^|[\s:])memoryerror\b",
            r"java\.lang\.outofmemoryerror",
            r"insufficient shared memory",
            r"exceed\w* (?:its |the |job )?memory limit",
            r"node was low on resource: memory",
            r"due to memory pressure",
            r"state[ =:]+out_of_memory",
            r"due to out.of.memory",
            r"worker .{0,40}killed by signal: bus error",
        ),
    ),
    Rule(
        "host_memory",
        ("edac", "memory failure", "dimm", "uncorrect"),
        (
            r"\bedac\b.{0,120}\b(?:ue\b|uncorrect|fatal)",
            r"memory failure: 0x",
            r"dimm.{0,60}uncorrect",
            r"uncorrect.{0,60}\bdimm",
        ),
    ),
    Rule(
        "host_cpu",
        ("machine check", "hardware error", "ierr", "caterr"),
        (
            r"machine check(?! events? logged)\b.{0,12}(?:exception|error|fatal|panic|:)",
            r"\[hardware error\]: cpu \d+: machine check",
            r"\bmce\b.{0,20}fatal",
            r"processor.{0,30}\bierr\b",
            r"\bcaterr\b",
        ),
    ),
    Rule(
        "sram",
        ("sram",),
        (
            r"\bsram\b.{0,80}(?:uncorrect|ecc|error|parity)",
            r"(?:uncorrect|ecc|parity).{0,80}\bsram\b",
        ),
    ),
    Rule("", ("xid",), (r"(?<!\w)xid(?: errors?)?\s*(?:\((?:pci:)?[0-9a-f:.]+\))?\s*[:=]?\s*(?P<xid>\d{1,3})\b",)),
    Rule(
        "chip_link",
        ("nvlink", "nvswitch", "sxid", "fabric manager", "fabricmanager", "ici", "xgmi", "c2c"),
        (
            r"\bsxid\b",
            r"\b(?:nvlink|nvswitch|nv_switch|xgmi|c2c link|fabric ?manager)\b"
            r".{0,80}(?:error|fail|fatal|fault|degraded)",
            r"\b(?:nvlink|nvswitch|nv_switch|xgmi|c2c link)\b.{0,80}(?:down\b|inactive)",
            r"(?:error|fail\w*|fatal|fault) .{0,40}\b(?:nvlink|nvswitch|xgmi)\b",
            r"\bici\b.{0,60}(?:error|fail|down\b|fault|unhealthy|timed? ?out|not (?:up|healthy)|flap)",
            r"(?:error|fail\w*|fault|unhealthy|timed? ?out) .{0,40}\bici\b",
        ),
    ),
    Rule(
        "firmware",
        ("gsp",),
        (
            r"\bgsp\d?\b.{0,60}(?:timeout|error|fail|crash|halt)",
            r"(?:timeout|fail|error).{0,60}\bgsp\d?\b",
        ),
    ),
    Rule(
        "hbm",
        ("ecc", "double", "dbe", "remap", "retire", "hbm"),
        (
            rf"(?:uncorrect\w*|double.bit|uncontained|contained|unrecover\w*) .{{0,40}}{_GPU_MEMORY}",
            rf"{_GPU_MEMORY}\b.{{0,40}}(?:uncorrect|double.bit|unrecover)",
            r"\bhbm\d?\b.{0,40}(?:error|fault|fail|parity)",
            r"row.?remap\w*.{0,40}(?:fail|marked|pending)",
            r"page.retire\w*.{0,20}(?:fail|pending)",
            r"\bdbe\b.{0,40}(?:detect|error)",
        ),
    ),
    Rule(
        "thermal",
        ("thermal", "temp", "overheat", "fan"),
        (
            r"(?:hw|sw)[ _]thermal[ _]slowdown",
            r"over[- ]?temp",
            r"temperature above threshold",
            r"thermal (?:shutdown|trip|throttl|viol|event|limit)",
            r"(?:critical|shutdown) temperature",
            r"overheat(?:ed|ing)",
            r"\bfan\b.{0,30}(?:fail|fault)",
        ),
    ),
    Rule(
        "data_corruption",
        ("corruption", "sdc", "checksum", "mismatch", "hash", "replica"),
        (
            r"silent data corruption",
            r"(?<![\[/\w-])sdc\b.{0,60}(?:detect|found|mismatch|error|corrupt|fail)",
            r"gemm .{0,40}mismatch",
            r"(?:weight|param\w*|gradient)s? (?:hash|checksum)\w* .{0,40}(?:mismatch|differ|not match)",
            r"(?:differ|diverge\w*) (?:across|between) (?:data.parallel )?replicas",
        ),
    ),
    Rule(
        "power",
        ("power", "psu", "ac lost", "voltage"),
        (
            r"\b(?:power supply|psu)\b.{0,40}(?:fail|lost|fault|redundancy)",
            r"power unit.{0,30}(?:fail|lost)",
            r"input lost \(ac",
            r"power (?:loss|outage)\b",
            r"voltage.{0,30}(?:critical|out of range)",
        ),
    ),
    Rule(
        "chassis",
        ("pcie", "aer", "board", "chassis", "backplane", "pciehp"),
        (
            r"(?:pcie bus error|\baer\b).{0,60}(?:severity=|type=)?uncorrected",
            r"\(fatal\).{0,40}pcie",
            r"pciehp.{0,60}link down",
            r"(?:system board|baseboard|backplane|chassis|i/o board|riser)\b.{0,40}(?:fault|fail|error)",
        ),
    ),
    Rule(
        "accelerator",
        (
            "fallen off",
            "gpu is lost",
            "halt",
            "amdgpu",
            "tpu",
            "hardware stack",
            "hang",
            "unhealthy",
            "device handle",
            "accelerator",
        ),
        (
            r"fallen off the bus",
            r"gpu is lost",
            r"hardware stack error",
            r"unable to determine the device handle",
            r"\bgpu hang\b",
            r"amdgpu.{0,60}(?:gpu reset begin|ring \w+ timeout|hardware error|ras.{0,20}error)",
            r"hw exception by gpu",
            r"(?:accelerator|tpu|tensorcore|sparsecore|core)\b.{0,40}halted (?:prematurely|unexpectedly)",
            r"\b(?:tpu|gpu)s?\b.{0,30}(?:is|are|became|marked|as|found|health:?) unhealthy(?!_maint)",
            r"unhealthy_tpu",
            r"unhealthy tpu",
            r"tpu (?:driver|chip|device|hardware)\b.{0,40}(?:fail|fault|error|dead)",
        ),
    ),
    Rule(
        "nic",
        ("mlx", "bnxt", "nic", "netdev", "transmit", "efa", "device fatal", "rdma"),
        (
            r"\bmlx[45]\w*\b.{0,100}(?:health|firmware|fatal|assert|command (?:error|failed)|reset|timeout|syndrome)",
            r"\b(?:bnxt_en|ice|gve|i40e|idpf)\b.{0,60}(?:firmware|fatal|hang|tx timeout|reset)",
            r"netdev watchdog",
            r"transmit queue \d+ timed out",
            r"async event.{0,20}device fatal",
            r"\b(?:nic|rdma (?:nic|device)|hca)\b.{0,40}(?:fail|fault|hung|flap|reset|fatal)",
            r"\befa\b.{0,40}(?:fatal|reset|fail)",
        ),
    ),
    # An InfiniBand completion that failed, by its number or its name: 5, flushed, only follows on an earlier one.
    Rule(
        "connection_lost",
        ("wr_flush_err", "completion"),
        (
            r"ibv_wc_wr_flush_err",
            r"got completion .{0,120}(?:status|error)[= ]5\b",
        ),
    ),
    Rule(
        "network",
        ("link", "port", "completion", "net/", "carrier", "unreachable", "packet", "ibv"),
        (
            r"got completion .{0,120}(?:status|error)[= ][1-9]",
            r"\bibv_wc_\w+_err\b",
            r"link ?(?:is |state )?:? ?down\b",
            r"linkdown",
            r"link_down",
            r"link (?:flap|fail)",
            r"(?:lost|no) carrier",
            r"carrier lost",
            r"\bib\w*[ _-]?port\b.{0,40}(?:down|error)",
            r"infiniband.{0,60}(?:down\b|fail)",
            r"async event.{0,20}port error",
            r"net/(?:ib|ofi|socket|fastrak|tcpx\w*)\b.{0,200}(?:error|fail|timed? ?out)",
            r"network is unreachable",
            r"ibv_\w{1,60}.{0,40}fail",
            r"retry (?:counter )?exceeded",
            r"[1-9]\d?% packet loss",
            r"\bswitch\b.{0,30}unreachable",
        ),
    ),
    Rule(
        "remote_storage",
        (
            "gs:",
            "gcs",
            "s3",
            "storage",
            "amazonaws",
            "boto",
            "azure",
            "blob",
            "tensorstore",
            "orbax",
            "checkpoint",
            "bucket",
            "lustre",
            "gpfs",
            "nfs",
            "weka",
            "filestore",
            "fuse",
            "stale",
            "quota",
            "transport",
            "http",
        ),
        (
            rf"{_STORE}.{{0,200}}{_REFUSED}",
            rf"{_REFUSED}.{{0,200}}{_STORE}",
            r"stale (?:nfs )?file handle",
            r"disk quota exceeded",
            r"nfs: server .{0,80}not responding",
            r"lustre.{0,100}(?:evict|timed out|lost|not available|fail)",
            r"transport endpoint is not connected",
            r"error executing an http request: http response code (?:429|5\d\d)",
            r"gcsfuse.{0,80}(?:error|fail)",
            r"reduce your request rate",
            r"mmfs.{0,60}(?:unmount|fail|lost)",
        ),
    ),
    Rule(
        "disk",
        (
            "no space",
            "nvme",
            "i/o error",
            "input/output",
            "ext4",
            "xfs",
            "read-only",
            "diskpressure",
            "disk",
            "ephemeral",
        ),
        (
            r"no space left on device",
            r"\bnvme\w*\b.{0,80}(?:timeout|i/o error|is down|fail|not ready|abort|reset)",
            r"blk_update_request",
            r"buffer i/o error",
            r"\bi/o error\b",
            r"input/output error",
            r"ext4-fs error",
            r"xfs.{0,60}(?:corrupt|shut)",
            r"read-only file ?system",
            r"diskpressure",
            r"low on resource: ephemeral",
            r"\bdisk\b.{0,20}(?:full|failure|fault)",
        ),
    ),
    Rule(
        "maintenance",
        ("maintenance", "drain", "cordon"),
        (
            r"(?:terminate|migrate)_?on_?host_?maintenance",
            r"(?:by|due to|for|under|upcoming|scheduled|host) maintenance",
            r"maintenance.event\b.{0,30}(?:terminate|migrate|start|pending|receiv|detect|notice|schedul)",
            r"unhealthy_maintenance",
            r"maintenance (?:notice|window (?:start|begin|open))",
            r"\b(?:node|host)\b.{0,60}(?:drain(?:ing|ed)|cordoned)",
            r"(?:drain(?:ing|ed)|cordon(?:ing|ed)) (?:node|host)",
        ),
    ),
    Rule(
        "preemption",
        ("preempt", "spot"),
        (
            r"\b(?:was|were|been|being|got|is|instances?\.|pod|job|workload|vm|node)[ .](?:be )?preempted\b",
            r"preempted (?:by|to|at|because|due)",
            r"\bdue to preemption",
            r"preemption (?:notice|warning|event)\b",
            r"preemptionbyscheduler",
            r"reason[:= ]+preempt",
            r"\bpreempting (?:pod|job|node|instance|workload)",
            r"received (?:a )?preemption",
            r"(?:state|status)[:= ]+preempted",
            r"\s(?:normal|warning)\s+preempted\s",
            r"spot.{0,30}(?:interrupt|reclaim|terminat|preempt|evict)",
        ),
    ),
    Rule(
        "host",
        ("panic", "hosterror", "host error", "node", "lockup", "stall", "reboot", "host"),
        (
            r"kernel panic",
            r"\bhosterror",
            r"instances\.host ?error",
            r"due to (?:a )?host error",
            r"node_fail",
            r"due to node fail",
            r"nodenotready",
            r"node is not ready",
            r"\bnode\b.{0,60}(?:not responding|became unreachable|is unreachable|went down|lost contact|is dead)",
            r"node\.kubernetes\.io/(?:unreachable|not-ready)",
            r"nodeunreachable",
            r"(?:soft|hard) lockup",
            r"self-detected stall",
            r"nodestatusunknown",
            r"nodelost",
            r"unexpected(?:ly)? reboot",
            r"\bhost\b.{0,40}(?:crashed|rebooted|vanished)",
        ),
    ),
    Rule(
        "time_limit",
        ("time limit", "runlimit", "walltime", "deadline"),
        (
            r"due to time limit",
            r"(?:reach|exceed|hit)\w*(?: (?:its|the|job|lsf|run|wall))* ?time limit",
            r"\bterm_runlimit\b",
            r"\bwalltime\b.{0,30}exceeded",
            r"longer than specified deadline",
        ),
    ),
    Rule(
        "user",
        ("interrupt", "cancel", "sigint", "scancel", "exiting program", "signal 2"),
        (
            r"\bkeyboardinterrupt\b",
            r"(?:received|caught|got) (?:sigint|signal[: ]+2)\b",
            r"cancell?ed at \S+ \*\*\*",
            r"cancell?ed by (?:user|operator|the user|uid|admin)",
            r"\bscancel\b",
            r"exiting program (?:at iteration|after \d)",
            r"user requested (?:stop|cancel|abort)",
        ),
    ),
    Rule(
        "numerics",
        ("nan", "finite"),
        (
            r"\b(?:loss|grad\w*(?: norm)?)\b(?: is|:| =|=| became| was)? ?(?:-?inf|nan)(?![\w.-])",
            r"found (?:nan|inf)\b",
            r"\bnan (?:loss|or inf|detected|found|encountered|in (?:the )?(?:loss|grad))",
            r"(?:is|are) (?:nan|not finite)\b",
            r"non-?finite (?:loss|grad|value)",
            r"invalid value \(nan\)",
            r"nans? (?:detected|encountered|found)",
            r"unexpected result nan",
        ),
    ),
    Rule(
        "driver",
        ("nvml", "nvrm", "nvidia-smi", "driver", "cuda", "libtpu", "forward compat"),
        (
            r"driver/library version mismatch",
            r"nvrm: api mismatch",
            r"failed to initialize nvml",
            r"nvidia-smi has failed",
            r"couldn't communicate with the nvidia driver",
            r"cuda driver version is insufficient",
            r"no cuda-capable device",
            r"system not yet init",
            r"forward compatibility was attempted",
            r"system_driver_mismatch",
            r"libtpu.{0,40}(?:version mismatch|incompatible)",
            r"cuda-capable device\(s\) is/are busy",
            r"nvrm:.{0,60}(?:rminitadapter failed|failed to (?:load|init))",
        ),
    ),
    Rule(
        "dependency",
        (
            "module",
            "import",
            "image",
            "resolve",
            "name resolution",
            "undefined symbol",
            "shared object",
            "could not find a version",
        ),
        (
            r"modulenotfounderror",
            r"\bimporterror\b",
            r"no module named",
            r"errimagepull",
            r"imagepullbackoff",
            r"(?:pull|pulling) image.{0,200}(?:fail|error|denied|not found)",
            r"fail\w* to pull",
            r"image pull fail",
            r"could not resolve host",
            r"in name resolution",
            r"undefined symbol:",
            r"error while loading shared",
            r"could not find a version that satisfies",
        ),
    ),
    Rule(
        "collective_timeout",
        ("timeout", "timed out", "timing out", "watchdog", "barrier", "stuck", "megascale", "rendezvous", "deadline"),
        (
            r"watchdog caught collective",
            r"collective operation timeout",
            r"nccl.{0,80}(?:timed out|timeout error|timing out|aborted due to timeout)",
            r"nccl watchdog.{0,40}timeout",
            r"operations have failed or timed out",
            r"heartbeat monitor timed out",
            r"barrier.{0,60}timed out",
            r"barrier timeout (?:reached|exceeded|after)",
            r"(?:timed out|deadline).{0,60}barrier",
            r"timed out waiting .{0,40}(?:recv|send|collective|all.?reduce|barrier)",
            r"failed to pass monitoredbarrier",
            r"may be stuck",
            r"termination timeout for rendezvous",
            r"megascale.{0,120}(?:hang|timed? ?out|stuck|deadline)",
            r"gloo.{0,80}timed? ?out",
        ),
    ),
    Rule(
        "hang",
        ("hung", "hang", "heartbeat", "no progress", "blocked for", "deadlock", "timeout (", "no step"),
        (
            r"\b(?:job|process|rank|worker|training|step)s?\b.{0,30}(?:is|are|appears?|seems?|looks?) (?:to be )?hung",
            r"hang detected",
            r"detected (?:a )?hang",
            r"no heartbeat from",
            r"did not get (?:\w+ )?heartbeat",
            r"no progress (?:for|in|since)",
            r"deadlock detected",
            r"blocked for more than \d+ s",
            r"^\W*timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!",
            r"no step (?:completed|finished) (?:for|in)",
        ),
    ),
    Rule(
        "connection_lost",
        (
            "connect",
            "nccl",
            "unhandled system",
            "peer",
            "broken pipe",
            "heartbeat",
            "coordination",
            "route to host",
            "host is down",
            "tcpstore",
            "rendezvous",
            "socket",
            "unhealthy",
            "distnetwork",
        ),
        (
            r"connection (?:was |is )?(?:reset|refused|aborted|timed out|lost|closed by (?:remote|peer|the other))",
            r"connection(?:reset|refused|aborted)error",
            r"connectfullmesh",
            r"ncclremoteerror",
            r"ncclsystemerror",
            r"unhandled system error",
            r"remote process exited",
            r"brokenpipeerror",
            r"broken pipe",
            r"task\b.{0,80}heartbeat timeout",
            r"(?:stopped sending|missed|missing) heartbeat",
            r"no route to host",
            r"error from coordination service",
            r"lost connection",
            r"host is down",
            r"rendezvous(?:connection|closed|timeout)error",
            r"(?:tasks|nodes|workers) (?:are|have become) unhealthy",
            r"(?:dist(?:network|store)error)",
            r"socket timeout",
            r"(?:coordinator|leader|worker|peer)\b.{0,60}unreachable",
            r"failed to connect to .{0,60}(?:coordinat|master|store|peer)",
        ),
    ),
    Rule(
        "terminated",
        ("sigterm", "signal", "143"),
        (
            r"(?:receiv\w+|caught|got)\b.{0,20}(?:sigterm|signal:? 15\b)",
            r"sigterm (?:received|caught)",
            r"death signal",
            r"exit(?:ed|ing)?(?: with)?(?: exit)? ?(?:code|status)?[ :=]+143\b",
        ),
    ),
    Rule(
        "maintenance",
        ("evict",),
        (
            r"\bevicted\b",
            r"taintmanagereviction",
            r"eviction by",
        ),
    ),
    Rule(
        "software",
        (
            "cuda",
            "hip",
            "segmentation",
            "segfault",
            "sigsegv",
            "dumped",
            "panicked",
            "check failed",
            "terminate called",
            "unrecognized arg",
            "in use",
            "busy",
            "fatal python",
            "tpu",
            "access fault",
            "cublas",
            "cudnn",
            "nccl error",
            "bus error",
        ),
        (
            r"cuda error: (?!out of memory)",
            r"cudaerror(?!outofmem)\w",
            r"illegal memory access",
            r"device-side assert",
            r"hip error",
            r"memory access fault by gpu",
            r"segmentation fault",
            r"segfault at",
            r"sigsegv",
            r"core dumped",
            r"\bpanicked at\b",
            r"check failed:",
            r"terminate called after throwing",
            r"unrecognized arguments",
            r"fatal python error",
            r"\btpu\b.{0,60}already in use",
            r"(?:/dev/(?:accel|vfio|nvidia)|tpu)\S{0,80}.{0,60}device or resource busy",
            r"(?:cublas|cudnn|cufft)_status_(?!success|alloc)",
            r"nccl error.{0,80}(?:invalid (?:usage|argument)|internal error)",
        ),
    ),
    Rule(
        "accelerator",
        ("tpu",),
        (
            r"\btpu (?:system )?initiali[sz]ation failed",
            r"unable to initialize backend 'tpu'",
        ),
    ),
    Rule(
        "process_exit",
        (
            "exit",
            "traceback",
            "killed",
            "sigkill",
            "signal",
            "died",
            "childfailed",
            "unhandled cuda",
            "crashloop",
            "back-off",
            "aborted",
            "failure_detected",
        ),
        (
            r"\bevent: *failure_detected\b",  # the launcher of the NVIDIA resiliency extension
            r"exit ?(?:code|status)\W{1,3}-?[1-9]\d{0,2}\b",
            r"exited (?:with|status|code)\W{0,2}(?:code |status )?-?[1-9]",
            r"traceback \(most recent call last\)",
            r"childfailederror",
            r"(?:died|exited|terminated) unexpectedly",
            r"signal[: ]+9\b",
            r"sigkill",
            r"task \d[\d,-]*: (?:killed|terminated|aborted|out of memory)",
            r"killed by signal",
            r"line \d+: +\d+ killed",
            r"dead actor",
            r"unhandled cuda error",
            r"crashloopbackoff",
            r"back-off restarting failed",
            r"job step aborted",
            r"died with <?signal",
        ),
    ),
)

# An exception by its class name, as Python prints it at the end of a traceback: seen in the case as written.
EXCEPTION = re.compile(
    r"(?:^|[\s\]|])(?:[A-Za-z_]\w*\.)*(?!Mean|RootMean|Squared|Absolute|Relative)"
    r"[A-Z]\w*(?:Error|Exception)(?::(?= |$)|$)"
)
# What sounds like trouble and is none.
HARMLESS = re.compile(
    "|".join(
        (
            # counts of nothing
            r"\bno (?:[a-z]+ ){0,2}(?:errors|failures|faults|timeouts|preemptions?|xids?|nans?)\b",
            r"(?:^|\bfound|\bwith|\bhad|\bhas|\bgot|[:=,(]) ?0 (?:errors|failures|faults|timeouts|xids|evictions)\b",
            r"\b(?:errors?|failures?|faults?|uncorrect\w*|xids?|timeouts|oom_kill|evictions|nans?)(?: count)?"
            r"(?:\s*+[:=]|[^\S ]*+ )\s*+\"?(?:0|none|false)\"?(?=\s*(?:$|[,;|}\])]))",
            # settings, states and advice
            r"timeouts? (?:is |was )?(?:set|configured|changed|defaults?)\b",
            r"maintenance.?event\W{0,4}none",
            r"\bnot active\b",
            r"(?:user|future|deprecation|runtime|resource)warning:",
            # chatter: a tried backend that is not there, NCCL's account of what it does, what garbage collection drops
            r"^info\b.{0,120}unable to initialize backend",
            r"\bnccl info\b",
            r"exception ignored in",
            # lines of source code, as tracebacks show them
            r"^(?:\[?rank ?\d+\]?:?|\d+:)?\s*(?:raise \w|except[ :(]|class \w+[(:]|def \w|import \w|assert |print\("
            r"|log(?:ger|ging)\.|warnings\.warn)",
        )
    )
)


def _loose(pattern: str) -> str:
    """A pattern that fits wherever `pattern` does, and maybe elsewhere, without what RE2 lacks or is slow at."""
    pattern = re.sub(r"\(\?<?!(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", pattern)  # what must not stand there
    pattern = re.sub(r"\(\?P<\w+>", "(", pattern)
    return re.sub(r"\.\{0,\d+\}", ".*", pattern)


GATE = "|".join(_loose(pattern) for rule in RULES for pattern in rule.patterns) + r"|\w(?:error|exception)"
