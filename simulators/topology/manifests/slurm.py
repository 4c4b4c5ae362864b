"""A batch script of Slurm for GPUs: whole nodes, one launcher on each."""

_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus}
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --partition=PARTITION # fill in
#SBATCH --output=%x-%j.out

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node={gpus} \\
  --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$head:29500" \\
  TRAIN # fill in: the script with its flags
"""


def slurm(name: str, chips: int, chips_per_node: int) -> str:
    """The script for so many GPUs, a multiple of those of a node or fewer than one node has."""
    gpus = min(chips, chips_per_node)
    return _SCRIPT.format(name=name, nodes=chips // gpus, gpus=gpus)
