"""Causes of lines in the shape in which drivers, kernels, schedulers, clouds and frameworks print them."""

from itertools import product
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]  # nothing public takes a pattern apart

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.cause_patterns import RULES, XIDS, parse_rules, parse_xids
from catalog.causes import CAUSES, FAMILIES, cause_of, causes_of, device_of, host_of, parse_causes

XID = "[12345.678] NVRM: Xid (PCI:0000:c6:00): {}, pid=4711, name=python3, "
TELLING = {
    # the accelerator and its memory
    XID.format(79) + "GPU has fallen off the bus.": "accelerator",
    XID.format(62) + "internal micro-controller halt": "accelerator",
    XID.format(48) + "An uncorrectable double bit error (DBE) has been detected on GPU": "hbm",
    XID.format(63) + "Row Remapper: New row (0x0000abc) marked for remapping": "hbm",
    XID.format(64) + "Row Remapper: Error: Failed to remap": "hbm",
    XID.format(94) + "Contained memory error": "hbm",
    XID.format(95) + "Uncontained ECC error": "hbm",
    XID.format(94) + "Contained: SM (0x1). RST: No, uncorrectable SRAM error": "sram",
    XID.format(74) + "NVLink: fatal error detected on link 3 (0x10000, 0x0)": "chip_link",
    XID.format(145) + "RLW_REMAP Nonfatal XC1 i0 Link 14": "chip_link",
    XID.format(119) + "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76": "firmware",
    XID.format(120) + "GSP task exception": "firmware",
    XID.format(31) + "Ch 0000001b, MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 @ 0x7f00": "software",
    XID.format(13) + "Graphics SM Warp Exception on (GPC 0, TPC 1): Out Of Range Address": "software",
    XID.format(45) + "Ch 00000010, errorString CTX SWITCH TIMEOUT": "process_exit",
    XID.format(38) + "0000 0000": "driver",
    "dcgm: Detected XID 79 on GPU 3": "accelerator",
    "ERROR: GPU is lost. Reboot the system to recover this GPU": "accelerator",
    "Unable to determine the device handle for GPU 0000:1A:00.0: Unknown Error": "accelerator",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "hbm",
    "            DRAM Uncorrectable            : 2": "hbm",
    "        Double Bit ECC                    : 3": "hbm",
    "uncorrectable ECC error on GPU: 0": "hbm",
    "KeyError: 0": "software",
    "Loss is NaN at step: 0": "numerics",
    # what is counted beside something of which there was nothing
    "GPU 3: uncorrectable ECC errors: 12, Xid errors: 0": "hbm",
    "xid errors: 0, uncorrectable ECC errors: 12": "hbm",
    "ECC errors: uncorrectable=4 xid_errors=0 NVLink errors: 0": "hbm",
    "health check failed on node gke-n7: NVLink fatal errors: 3, Xid errors: 0, retired pages: 0": "chip_link",
    "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE) ran for 600001 ms; errors: 0": (
        "collective_timeout"
    ),
    "no errors in dmesg, but Watchdog caught collective operation timeout": "collective_timeout",
    "Node n7 is not ready: NodeNotReady (errors=0)": "host",
    "NodeNotReady errors=0 node=n7": "host",
    "nvlink errors=0 xid errors=0, ecc uncorrectable errors=3": "hbm",
    "job preempted by scheduler, failures: 0": "preemption",
    "srun: error: n7: task 3: Killed (exit code 137), oom_kill: 0": "process_exit",
    "errors: 0, loss is NaN at step: 0": "numerics",
    "CUDA out of memory on process: 0": "device_memory",
    "ICI link down on slice: 0": "chip_link",
    "NaN detected in loss at step: 0": "numerics",
    "loss became NaN (iteration): 0": "numerics",
    "Lost connection to host: 0": "connection_lost",
    "CUDA out of memory (device id): 0": "device_memory",
    "OOMKilled container trainer, restart count: 0": "host_out_of_memory",
    "connection reset by peer, retry counter 0": "connection_lost",
    "3m  Warning  NodeNotReady  node/n7  taint node.kubernetes.io/unreachable:NoExecute was added, Node is not ready": (
        "host"
    ),
    "W bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB": "device_memory",
    "AssertionError: None": "software",
    "DCGM: Double-bit ECC errors: 2, retired pages pending on GPU 5": "hbm",
    "amdgpu 0000:05:00.0: amdgpu: GPU reset begin!": "accelerator",
    "HW Exception by GPU node-3 (Agent handle: 0x55d) reason :GPU Hang": "accelerator",
    "nvidia-nvswitch3: SXid (PCI:0000:88:00.0): 22003, Non-fatal, Link 32 rx_long_packet": "chip_link",
    "NVLink 4 of GPU 2 is inactive": "chip_link",
    "Fabric Manager: fatal NVSwitch error detected, stopping": "chip_link",
    "ICI link 2 between chip 0 and chip 4 is unhealthy": "chip_link",
    "Failed to initialize: ICI link training timed out": "chip_link",
    "INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure": "accelerator",
    "Cloud TPU node tpu-7 health: UNHEALTHY_TPU": "accelerator",
    "RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: TPU initialization failed": "accelerator",
    "GPU 6: HW Thermal Slowdown: Active": "thermal",
    "CPU12: Package temperature above threshold, cpu clock throttled": "thermal",
    "sdc_scan: silent data corruption suspected on chip 3": "data_corruption",
    "GEMM result mismatch on device 2: expected 0x3f80, got 0x3f81": "data_corruption",
    # the host
    "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#0_DIMM#0": "host_memory",
    "Memory failure: 0x3fd20: recovery action for dirty LRU page: Recovered": "host_memory",
    "mce: [Hardware Error]: CPU 44: Machine Check Exception: 5 Bank 3: be00000000800400": "host_cpu",
    "ipmi: Power Supply 2: Failure detected": "power",
    "ipmi: System Board fault: asserted": "chassis",
    "pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0": "chassis",
    "Kernel panic - not syncing: Fatal exception in interrupt": "host",
    "watchdog: BUG: soft lockup - CPU#7 stuck for 22s! [python:4711]": "host",
    "compute.instances.hostError: Instance gke-a3-17 terminated": "host",
    "3m  Warning  NodeNotReady  node/gke-a3-17  Node is not ready": "host",
    "slurmstepd: error: *** JOB 7 ON n12 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG "
    "FOR DETAILS ***": "host",
    "srun: error: Node failure on node077": "host",
    "srun: error: Node failure on node[077-078]": "host",
    # links between hosts, adapters
    "mlx5_core 0000:4b:00.0: mlx5_health_try_recover: health recovery flow aborted": "nic",
    "mlx5_core 0000:4b:00.0 rdma3: Link down": "network",
    "NETDEV WATCHDOG: eth0 (gve): transmit queue 3 timed out": "nic",
    "h7:77:99 [3] misc/ibvwrap NCCL WARN NET/IB : Got async event : device fatal on mlx5_2": "nic",
    "h7:77:99 [3] NCCL WARN NET/IB : mlx5_1:1 Got async event : port error": "network",
    "h7:77:99 [3] NCCL WARN NET/IB : Got completion from peer 10.1.2.3<4791> with status=12 opcode=0 len=0 vendor err "
    "129 (Send) error": "network",
    "h7:77:99 [3] transport/net_ib.cc:2135 NCCL WARN NET/IB: Got completion from peer 10.1.2.3<4791> with status=12 "
    "opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2": "network",
    "ibv_poll_cq: completion with IBV_WC_RETRY_EXC_ERR on qp 0x1f4": "network",
    "h7:77:99 [3] NCCL WARN NET/IB: Got completion from peer 10.1.2.3<4791> with status=5 opcode=0 len=0 vendor err "
    "249 (Send) hca mlx5_2": "connection_lost",
    "work request failed: IBV_WC_WR_FLUSH_ERR": "connection_lost",
    "bond0: link status definitely down for interface ens8, IB port down": "network",
    "OSError: [Errno 101] Network is unreachable": "network",
    # collectives and connections: symptoms
    "[rank3]:[E101] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, "
    "Timeout(ms)=600000) ran for 600019 milliseconds before timing out.": "collective_timeout",
    "[Rank 3] Some NCCL operations have failed or timed out. Due to the asynchronous nature": "collective_timeout",
    "NCCL watchdog timeout on rank 12": "collective_timeout",
    "terminate called after throwing an instance of 'c10::DistBackendError'": "process_exit",
    "terminate called after throwing an instance of 'std::bad_function_call'": "software",
    "RuntimeError: [/pytorch/gloo] Timed out waiting 1800000ms for recv operation to complete": "collective_timeout",
    "DEADLINE_EXCEEDED: Barrier timed out. Id: checkpoint_save_4. Timed out task names: task:3": "collective_timeout",
    "Megascale: hang detected, launch_id 77 has not finished on slice 2": "collective_timeout",
    "This thread has been waiting for `all reduce` for 40s and may be stuck: Expected 8 threads": "collective_timeout",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error, "
    "NCCL version 2.21.5": "connection_lost",
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed": "connection_lost",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting": "connection_lost",
    "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error": "connection_lost",
    "ConnectionResetError: [Errno 104] Connection reset by peer": "connection_lost",
    "Task /job:jax_worker/replica:0/task:3 heartbeat timeout. The task has crashed": "connection_lost",
    "Polled an error from coordination service (this can be an error from this or another task).": "connection_lost",
    # that a machine was taken away is one of several guesses here, and none that the line vouches for
    "Task /job:jax_worker/replica:0/task:37 heartbeat timeout. This indicates that the remote task has failed, got "
    "preempted, or crashed unexpectedly.": "connection_lost",
    "UNAVAILABLE: Failed to send RPC to coordination service. Either the leader task was preempted/died/restarted "
    "unexpectedly or this task is experiencing network issues.": "connection_lost",
    "F0929 17:42:48.594200 104 client.h:77] Terminating process because the JAX distributed service detected fatal "
    "errors. absl::Status: INTERNAL: The shutdown barrier has failed": "connection_lost",
    "Coordination service has stopped. RecordHeartbeat() from task: 3 failed. This usually implies an earlier error "
    "that caused coordination service to shut down before the workers disconnect gracefully.": "connection_lost",
    "INTERNAL: task:11 unexpectedly tried to connect with a different incarnation. It has likely restarted.": (
        "connection_lost"
    ),
    "torch.distributed.DistNetworkError: The client socket has timed out": "connection_lost",
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.": (
        "connection_lost"
    ),
    # memory
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 79 GiB": "device_memory",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 34359738368 bytes.": (
        "device_memory"
    ),
    "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 36.2G of 31.2G hbm.": "device_memory",
    "RuntimeError: HIP out of memory. Tried to allocate 20 MiB": "device_memory",
    "Out of memory: Killed process 4711 (python3) total-vm:512000000kB": "host_out_of_memory",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.": (
        "host_out_of_memory"
    ),
    "Last State: Terminated  Reason: OOMKilled  Exit Code: 137": "host_out_of_memory",
    "MemoryError": "host_out_of_memory",
    "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible that dataloader's workers "
    "are out of shared memory.": "host_out_of_memory",
    # storage
    "OSError: [Errno 28] No space left on device: '/ckpt/step_100'": "disk",
    "nvme nvme3: I/O 12 QID 4 timeout, aborting": "disk",
    "Warning  Evicted  pod/w-3  The node was low on resource: ephemeral-storage.": "disk",
    "google.api_core.exceptions.TooManyRequests: 429 GET https://storage.googleapis.com/b/x": "remote_storage",
    "tensorstore: ABORTED: Error writing gs://b/ckpt: HTTP response code: 503": "remote_storage",
    "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation: s3 Please "
    "reduce your request rate.": "remote_storage",
    "google.api_core.exceptions.Forbidden: 403 POST https://storage.googleapis.com/upload: denied": "remote_storage",
    "LustreError: 11-0: fs-OST0004: operation ost_write to node 10.0.0.4@tcp failed: rc = -107, client evicted": (
        "remote_storage"
    ),
    "nfs: server 10.0.0.2 not responding, timed out": "remote_storage",
    # taken away, stopped
    "compute.instances.preempted: Instance tpu-vm-3 was preempted.": "preemption",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***": "preemption",
    "2m  Normal  Preempted  pod/worker-3  Preempted by team-b/big-0 on node gke-a3-17": "preemption",
    "EC2 spot instance interruption notice received": "preemption",
    "Received preemption notice with death_time 2026-11-02T08:32:11+00:00": "preemption",
    "Notified coordination service that this task will be preempted at 2026-11-02T08:32:11+00:00.": "preemption",
    "compute.instances.terminateOnHostMaintenance": "maintenance",
    "maintenance-event: TERMINATE_ON_HOST_MAINTENANCE": "maintenance",
    "node gke-a3-17 is being drained": "maintenance",
    "Warning  Evicted  pod/w-3  evicted by node drain": "maintenance",
    "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***": "time_limit",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***": "user",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***": "requeue",
    "KeyboardInterrupt": "user",
    "Warning  DeadlineExceeded  job/train  Job was active longer than specified deadline": "time_limit",
    "TERM_RUNLIMIT: job killed after reaching LSF run time limit.": "time_limit",
    "=>> PBS: job killed: walltime 3612 exceeded limit 3600": "time_limit",
    "exiting program after 1190.2 minutes": "user",
    "Main process received SIGTERM, exiting": "terminated",
    "torch.distributed.elastic.multiprocessing.api: Received Signals.SIGTERM death signal, shutting down": "terminated",
    # the program
    "ValueError: shape mismatch: (3, 4) and (4, 3)": "software",
    "[rank12]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered": "software",
    "F0811 21:54:55.5 1 array.cc:77] Check failed: size >= 0 (-1 vs. 0)": "software",
    "python: segfault at 0 ip 00007f error 4 in libc.so.6": "software",
    "Fatal Python error: Segmentation fault": "software",
    "The TPU is already in use by process with pid 4711": "software",
    "open /dev/vfio/0: Device or resource busy": "software",
    "ModuleNotFoundError: No module named 'flash_attn'": "dependency",
    'Warning  Failed  pod/w-3  Failed to pull image "r/x:1": not found': "dependency",
    "NVRM: API mismatch: the client has the version 550.54, but this kernel module has 535": "driver",
    "Failed to initialize NVML: Driver/library version mismatch": "driver",
    "cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no "
    "CUDA-capable device is detected": "driver",
    "AssertionError: rank 0: found NaN in local forward loss calculation": "numerics",
    "completed step: 77, seconds: 1.234, loss: nan": "numerics",
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)": "numerics",
    "INFO: task python:4711 blocked for more than 120 seconds.": "hang",
    "Timeout (0:10:00)!": "hang",
    "Did not get subsequent heartbeat. Waited 600.00 seconds.": "hang",
    "Traceback (most recent call last):": "process_exit",
    "srun: error: n12: task 3: Exited with exit code 1": "process_exit",
    "torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 5)": "process_exit",
    "worker 3 terminated with exit code 137": "process_exit",
}
ORDINARY = (
    "[I0811 21:54:55.531340 1 metric_logger.py:226] completed step: 77, seconds: 1.234, loss: 5.1",
    " iteration 57/1000 | consumed samples: 58368 | elapsed time per iteration (ms): 125650.0 | lm loss: 1.963987E+01 "
    "| loss scale: 12.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "h7:77:99 [3] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "h7:77:99 [3] NCCL INFO NET/IB : timeout set to 600",
    "NCCL_IB_TIMEOUT=22",
    "NCCL watchdog timeout set to 600 seconds",
    "nccl_timeout: 1800000",
    "barrier_timeout_seconds=300",
    "loss: nan-safe reduction enabled",
    "using nan_to_num in loss",
    "error: 0",
    "errors: 0, warnings: 0",
    "found 0 errors in 128 shards",
    "uncorrectable ECC errors: 0",
    "uncorrectable ECC errors: 0 (volatile), 0 (aggregate)",
    "GPU health: Xid errors: 0, uncorrectable ECC: 0, NVLink fatal errors: 0, HW thermal slowdown: 0",
    "GPU 0: ECC uncorrected=0 corrected=0",
    "0 uncorrectable ECC errors",
    "NVLink error count total 0",
    "ecc.errors.uncorrected.volatile.total, 0",
    "clocks_event_reasons.hw_thermal_slowdown, 0",
    "symbol_errors: 0, link_downed: 0",
    "healthcheck node=n7 gpu=3 nvlink errors=0 xid errors=0",
    "nvlink errors=0 crc errors=0",
    "nvlink fatal errors=0 nonfatal errors=0",
    "GPU0 ecc uncorrectable errors=0 hbm temp=45 nvlink errors=0",
    "nvlink error count=0 crc error count=0",
    "NVLink error counters: replay=0 recovery=0 crc=0 errors=0",
    '    "OOMKilled": false,',
    "oom_kills: 0",
    "pods evicted: 0",
    "TERMINATE_ON_HOST_MAINTENANCE=true",
    "no upcoming maintenance",
    "SRAM Uncorrectable : 0",
    "            SRAM Uncorrectable Parity     : 0",
    "            SRAM Uncorrectable            : N/A",
    "        Aggregate Uncorrectable SRAM Sources",
    "        Double Bit ECC                    : 0",
    "        Double Bit ECC                    : N/A",
    "\t Link 0: Link Down Count: 0",
    "LinkDownedCounter:...............0",
    "link_downed 0",
    'DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="0"} 0',
    "instance was preempted: False",
    "upcoming maintenance: none",
    "ECC errors: none",
    "no uncorrectable ecc errors",
    "HW Thermal Slowdown : Not Active",
    "Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s",
    "                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s",
    "    key: node.kubernetes.io/unreachable",
    "LIBTPU_INIT_ARGS=--megascale_graph_hang_threshold=1m --megascale_error_reporter_abort_on_hang=true",
    "+ export LIBTPU_INIT_ARGS=--megascale_graph_hang_threshold=10m",
    "export LIBTPU_INIT_ARGS='--megascale_graph_hang_threshold=10m --megascale_error_reporter_abort_on_hang=true'",
    "I0420 06:22:56 7 flags.py:1] MEGASCALE_TIMEOUT=3600, megascale flags: --megascale_graph_hang_threshold=10m",
    "SLURM_JOB_PARTITION=spot-preemptible",
    # every end of a program that watched for a preemption, however it ended
    "I1102 08:32:11.512345 331 preemption_sync_manager.cc:170] Cancelled call to retrieve preemption notice. This is "
    "expected upon program shutdown.",
    "Failed to retrieve preemption notice from coordination service: CANCELLED",
    "Coordination service has stopped. ShutdownTaskAsync() failed.",
    "Polling for error from coordination service. This is a long-running RPC that will return only if an error is "
    "encountered or cancelled (e.g. due to shutdown).",
    # every start of a program on TPUs that has TensorFlow look for GPUs; of a GPU that fails other numbers tell
    "2026-04-20 06:22:56.205397: E external/local_xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to "
    "cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
    "W bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 14GiB with freed_by_count=0. "
    "The caller indicates that this is not a failure, but this may mean that there could be performance gains",
    "/data/oom_tests/run_3/loss.txt",
    "reading gs://bucket/oom-analysis/part-00007",
    "saved checkpoint at iteration 500 to gs://bucket/ckpt",
    "restoring checkpoint 503 from s3://bucket/run",
    "ici_fsdp_parallelism: 16",
    "tolerating node failure on restart: true, job requeue enabled",
    "Config param ici_tensor_parallelism: 1 failed_hosts: []",
    "exit_duration_in_mins ........................... 1190",
    "process finished with exit code 0",
    "grad norm: inf | number of skipped iterations:   1 | number of nan iterations:   0 |",  # the scale was too large
    "storage: DistStore opened, 8 clients",
    "got signal handlers, info level 2",
    "Exit Code: 0",
    "onHostMaintenance: TERMINATE",
    "maintenance-event: NONE",
    "preemptible: false",
    "jax preemption sync manager initialised",
    "Handler for SIGTERM registered",
    "Sending process 4711 closing signal SIGTERM",
    "job time limit is 24:00:00",
    "INFO:2026-01-01 00:00:00:jax._src.xla_bridge:Unable to initialize backend 'tpu': libtpu.so not found",
    "    raise RuntimeError('CUDA out of memory')",
    "    except KeyboardInterrupt:",
    "[rank0]:     raise ValueError(msg)",
    "class CheckpointError(Exception):",
    "Exception ignored in: <function Pool.__del__ at 0x7f>",
    "mean_squared_error: 0.25, MeanSquaredError: 0.25",
    "torch/x.py:7: UserWarning: Failed to load image Python extension: undefined symbol: _ZN3",
    "mce: [Hardware Error]: Machine check events logged",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
    XID.format(154) + "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    "4 packets transmitted, 4 received, 0% packet loss, time 3004ms",
    "ens8: Link is up at 100 Gbps, full duplex",
    "downloading shard 44: https://host/link_44",
    "step 100: timed outer product at 3.2 ms",
    "gradient norm 1.25, clipped; gradient overflow counter 0",
    "terminating dataset iterator normally",
    "the hanging indent of this line is fine",
    "sdc: 7.3 TiB disk attached as /dev/sdc",
    "",
)


def test_every_cause_of_a_rule_is_in_the_list():
    named = {rule.cause for rule in RULES if rule.cause} | {cause for cause in XIDS.values() if cause}
    assert named <= CAUSES.keys()
    assert {cause.family for cause in CAUSES.values()} == set(FAMILIES)
    assert all(name == cause.name for name, cause in CAUSES.items())


def test_the_lines_tell_of_nearly_every_cause():
    assert CAUSES.keys() - set(TELLING.values()) == {"unknown"}
    assert len(TELLING) >= 80 and len(ORDINARY) >= 40


@pytest.mark.parametrize(("line", "cause"), TELLING.items())
def test_telling_lines(line, cause):
    assert cause_of(line) == cause


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines(line):
    assert cause_of(line) is None


def least(pattern) -> list[str]:
    """The shortest text that each alternative of a pattern, taken apart, fits: a needle must be in each of them."""
    texts = [""]
    for kind, of in pattern:
        texts = ["".join(pair) for pair in product(texts, _least_of(str(kind), of))]
    return texts


def _least_of(kind: str, of) -> list[str]:
    match kind:
        case "LITERAL":
            return [chr(of)]
        case "SUBPATTERN":
            return least(of[3])
        case "BRANCH":
            return [text for one in of[1] for text in least(one)]
        case "IN":
            return _least_of(str(of[0][0]), of[0][1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [text * of[0] for text in least(of[2])] if of[0] else [""]
        case "RANGE":
            return [chr(of[0])]
        case "CATEGORY":
            return ["7"]
        case "ANY" | "NEGATE":
            return [" "]
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return [""]
    raise ValueError(f"{kind} is not known here")


def test_every_alternative_of_a_pattern_is_reached_through_a_needle_of_its_rule():
    out_of_reach = [
        (rule.cause, text)
        for rule in RULES
        for pattern in rule.patterns
        for text in least(parser.parse(pattern))
        if not any(needle in text for needle in rule.needles)
    ]
    assert out_of_reach == []


def test_alternatives_are_told_apart():
    assert least(parser.parse(r"\bdist(?:network|store) ?err(?!ata).{0,9}[1-9]\d")) == [
        "distnetworkerr17",
        "diststoreerr17",
    ]


def test_many_lines_at_once_are_judged_as_one_by_one():
    lines = [*TELLING, *ORDINARY, "\ud800 NVRM: Xid (PCI:0000:c6:00): 79", "x" * 10_000 + " Kernel panic"]
    assert causes_of(lines) == [cause_of(line) for line in lines]
    assert causes_of([]) == []


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*TELLING, *ORDINARY]) | st.text(max_size=60), max_size=8), st.text(max_size=5))
def test_any_mix_of_pieces_is_judged_alike(pieces, glue):
    line = glue.join(pieces)
    assert causes_of([line]) == [cause_of(line)]
    assert cause_of(line) in {None, *CAUSES}


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("Nov 21 12:00:00 gke-a3-17 kernel: NVRM: Xid (PCI:0000:c6:00): 79", "gke-a3-17"),
        ("2026-11-21T12:00:00.123+00:00 n12 kernel[1]: mce", "n12"),
        ("slurmstepd: error: *** JOB 7 ON r6i5n1 CANCELLED AT 2021-05-23T08:46:02 ***", "r6i5n1"),
        ("srun: error: n12: task 3: Exited with exit code 1", "n12"),
        ("srun: error: Node failure on node077", "node077"),
        ("srun: error: Node failure on rack1-node[077-078]", None),
        ("srun: error: Node failure on node077,gpu12", None),
        ("3m  Warning  NodeNotReady  node/gke-a3-17  Node is not ready", "gke-a3-17"),
        ("Instance tpu-vm-3 was preempted.", "tpu-vm-3"),
        ("[pod/worker-3/train] Traceback", "worker-3"),
        ("Connection closed by remote peer h-0123.cluster.local<4791>", "h-0123.cluster.local"),
        ("ipmi: node7: Power Supply 2 failure", "node7"),
        ("on host 'b200-07': link down", "b200-07"),
        ("no heartbeat from rank 12", None),
        ("stage 3 of node 4 failed", None),
        ("Timeout waiting for RPC from GSP0!", None),
        ("ValueError on 2026-01-01", None),
        ("from train-1.py: line 3", None),
        ("x" * 5_000, None),
    ],
)
def test_hosts(line, host):
    assert host_of(line) == host


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("GPU 3: HW Thermal Slowdown", 3),
        ("on GPU3", 3),
        ("device cuda:7 is lost", 7),
        ("/dev/nvidia5: busy", 5),
        ("local_rank: 2 (pid: 5)", 2),
        ("ICI link between chip 4 and chip 5", 4),
        ("NVRM: Xid (PCI:0000:c6:00): 79", None),
        ("GPU 0000:1A:00.0: Unknown Error", None),
        ("8 GPUs, CUDA 12.4", None),
        ("rank 3", None),
    ],
)
def test_devices(line, device):
    assert device_of(line) == device


RULE = {"cause": "host", "needles": ["panic"], "patterns": ["kernel {what}"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"needles": []}, "needs patterns and needles"),
        ({"needles": ["Panic"]}, "needles in lower case"),
        ({"patterns": []}, "needs patterns"),
        ({"patterns": ["kernel {else}"]}, "a part that is not there: else"),
    ],
)
def test_a_rule_that_cannot_fit_is_a_defect(change, said):
    with pytest.raises(ValueError, match=said):
        parse_rules({"parts": {"what": ["panic", "oops"]}, "rules": [RULE | change]})


def test_a_part_of_a_rule_stands_for_any_of_its_list():
    (rule,) = parse_rules({"parts": {"what": ["panic", "oops"]}, "rules": [RULE]})
    assert rule == ("host", ("panic",), ("kernel (?:panic|oops)",))


def test_a_number_of_the_driver_tells_of_one_cause():
    with pytest.raises(ValueError, match="Xid 79 tells of host and of power"):
        parse_xids({"xids": [{"cause": "host", "numbers": [79]}, {"cause": "power", "numbers": [54, 79]}]})


def test_a_cause_stands_once_and_in_a_listed_family():
    cause = {"name": "a", "family": "hardware", "title": "A", "meaning": "M.", "cure": "C."}
    assert parse_causes({"families": {"hardware": ""}, "causes": [cause]})["a"].title == "A"
    for causes in ([cause, cause], [cause | {"family": "software"}]):
        with pytest.raises(ValueError, match="stands twice, or its family"):
            parse_causes({"families": {"hardware": ""}, "causes": causes})
