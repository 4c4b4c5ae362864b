"""What hosts say when they fail: messages in the shape in which drivers, libraries and schedulers print them."""

MESSAGES: dict[str, tuple[str, ...]] = {
    "accelerator": (
        "NVRM: Xid (PCI:0000:{bus}:00): 79, pid={pid}, name=python, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:{bus}:00): 62, pid={pid}, name=python, internal micro-controller halt",
        "[rank{rank}]: torch.AcceleratorError: CUDA error: unspecified launch failure on GPU {device}; "
        "NVRM: Xid (PCI:0000:{bus}:00): 109, context switch timeout",
    ),
    "hbm": (
        "NVRM: Xid (PCI:0000:{bus}:00): 48, pid={pid}, uncorrectable double bit error (DBE) detected",
        "NVRM: Xid (PCI:0000:{bus}:00): 63, Row Remapper: New row marked for remapping, reset gpu to activate.",
        "NVRM: Xid (PCI:0000:{bus}:00): 64, Row Remapper: failed to store row remapping info",
    ),
    "sram": ("NVRM: Xid (PCI:0000:{bus}:00): 94, Contained: SM uncorrectable SRAM error, pid={pid}, name=python",),
    "firmware": ("NVRM: Xid (PCI:0000:{bus}:00): 119, pid={pid}, Timeout waiting for RPC from GSP{device}!",),
    "software": (
        "[rank{rank}]: RuntimeError: shape mismatch in batch {seq}: expected 8192 tokens, found 8191",
        "[rank{rank}]: KeyError: 'shard_{seq}' in data loader worker",
    ),
    "network": (
        "bnxt_re/mlx5: infiniband port 1 state change: LinkDown on {host}, rail {device}",
        "NET/IB : Got completion from peer {host} with error 12, opcode 0, len 0, vendor err 129 (retry exceeded)",
    ),
    "nic": ("mlx5_core 0000:{bus}:00.0: Health issue observed, firmware internal error, severity(3) ERROR",),
    "maintenance": ("compute.instances.terminateOnHostMaintenance: Instance {host} terminated by host maintenance",),
    "user": ("srun: Job step aborted: cancelled by operator for a configuration update (scancel, signal SIGTERM)",),
    "hang": ("Watchdog: no heartbeat from rank {rank} for 600 s; job is hung, dumping stacks and aborting",),
    "data_corruption": ("sdc-check: GPU {device} on {host}: silent data corruption, GEMM checksum mismatch",),
    "thermal": ("NVRM: GPU {device} on {host}: HW Thermal Slowdown active, GPU over temperature shutdown threshold",),
    "disk": ("nvme nvme{device}: controller is down; will reset: CSTS=0xffffffff, blk_update_request: I/O error",),
    "power": ("ipmi: {host}: Power Supply {device} failure detected, input lost (AC/DC)",),
    "chassis": ("ipmi: {host}: system board fault detected on baseboard {device}, chassis fault LED on",),
    "dependency": ("ModuleNotFoundError: No module named 'dataset_reader'; container image pull failed on {host}",),
    "host_cpu": ("mce: [Hardware Error]: CPU {device}: Machine Check Exception: 5 Bank 3: be00000000800400",),
    "host_memory": ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#{device}_DIMM#0: uncorrected error",),
}
SYMPTOMS: tuple[str, ...] = (
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE) ran for "
    "600000 milliseconds before timing out.",
    "[rank{rank}]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
    "socketProgress: Connection closed by remote peer {host}<40{device}01>",
)
