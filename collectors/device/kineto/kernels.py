"""What a kernel of a GPU is, from its own name and that of the call that launched it."""

import re

from collectors.device.xplane.lines import is_gpu_copy, of_collective

_NCCL = re.compile(
    r"^(nccl|rccl|hccl|xccl|oneccl|gloo:|mscclKernel|oneshot_all_reduce|(void )?nvshmem|.*("
    # engines' own all-reduces (vLLM, SGLang, AITER, TensorRT-LLM, FlashInfer, TurboMind) and their parts
    r"cross_device_(reduce|store)|allreduce_?fusion|\ballreduce_LL|turbomind::comm::|(one|two)_?shot_?all_?reduce|"
    # symmetric memory of PyTorch with its signals, quick reduce of ROCm, Transformer Engine's tensor parallelism
    r"(multimem|one_shot|two_shot)_(all_reduce|all_gather|reduce_scatter)|all_to_all_v(dev|2d)|"
    r"c10d::.*\b(barrier|put_signal|wait_signal)_kernel|quickreduce::|userbuffers_(fp16|push)|"
    # exchanges of mixtures of experts: what tells peers how much comes waits for them as well
    r"deep_ep::\w+::((cached_)?notify_)?(dispatch|combine)\b|deep_ep::\w+::barrier\b|pplx::AllToAll|"
    r"moe_?(A2A(Dispatch|Combine)|AllToAll)\w*Kernel))",
    re.IGNORECASE,
)
_ATTENTION = re.compile(
    # FlashInfer's name is that of norms and of sampling too; vLLM's reshape_and_cache_flash fills the cache
    r"(?<!cache_)flash(?!infer)|fmha|attention|attn|paged_|mha_(fwd|bwd|varlen)|sdpa|efficient_attention|"
    r"(prefill|decode)\w*KV_?Cache",
    re.IGNORECASE,
)
_CONVOLUTION = re.compile(
    r"conv\dd|convolve|convolution|implicit_gemm|implicit_convolve|dgrad|wgrad|fprop|winograd|cudnn.*conv|"
    r"miopen.*conv|igemm_(fwd|bwd|wrw)|Conv_",
    re.IGNORECASE,
)
_MATMUL = re.compile(
    # FBGEMM is a library of embeddings too: its name alone tells no product
    r"(?<!fb)gemm|gemv|cublas|cutlass|Cijk_|nvjet|matmul|splitK|xmma|rocblas|hipblas|wvSplitK|flat_?mm|mul_mat_|"
    # a word of its own: `triton_mm`, `_scaled_mm`, Inductor's `fused_addmm_relu`, TensorRT-LLM's `bmm_E4m3_E4m3`
    r"(?<![a-z])(add|b|baddb)?mm(?![a-z])|^triton_tem_|"
    # engines' mixtures of experts (vLLM and SGLang in Triton, AITER), and their products with weights of few bits
    r"fused_moe_kernel|(?<![a-z])fmoe_|(^|::)Marlin\w*(<|$)",
    re.IGNORECASE,
)
_TRITON = re.compile(r"^triton_|^fused_|_fused_", re.IGNORECASE)
# Inductor names what computes element by element or reduces after all that it was made of: what follows a convolution
# is a `triton_poi_fused_convolution_relu`. Its templates (`triton_tem_`) multiply.
_GENERATED = re.compile(r"^triton_(poi|red|per|for)_")
_MOVEMENT = re.compile(
    r"CatArray|index|gather|scatter|embedding|transpose|permute|copy_kernel|direct_copy|sort|roll_|pad|slice|concat|"
    r"split_|unfold|repeat|reshape|rope_cache|reshape_and_cache",
    re.IGNORECASE,
)
_ELEMENTWISE = re.compile(
    r"elementwise|reduce|softmax|norm|activation|gelu|silu|relu|dropout|multi_tensor|optimizer|adam|cross_entropy|"
    r"nll_loss|random|distribution|fill|where|masked|cumsum|scan|rotary|rms_|pool|add|mul",
    re.IGNORECASE,
)
_MATMUL_CALLS = re.compile(
    r"^aten::(mm|bmm|addmm|baddbmm|linear|matmul|_scaled_mm|addmv|mv|dot|_addmm_activation)(_|$)"
)
_CONVOLUTION_CALLS = re.compile(r"^aten::(\w*conv\w*)$")
_COLLECTIVES = (
    ("cross_device_reduce", "all-reduce"),  # of vLLM, SGLang and AITER, in one stage or two
    (r"deep_ep::\w+::((cached_)?notify_)?(dispatch|combine)|moe_?a2a", "all-to-all"),
    ("all_?reduce", "all-reduce"),
    ("reduce_?scatter", "reduce-scatter"),
    ("all_?gather", "all-gather"),
    ("all_?to_?all", "all-to-all"),
    ("broadcast", "broadcast"),
    ("send|recv|coalesced_p2p|(put|wait)_signal", "permute"),
    ("barrier", "all-reduce"),
    ("reduce", "broadcast"),  # from all to one or from one to all: not all wait for the last
    ("gather|scatter", "permute"),
)
_NAMED = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _COLLECTIVES)


def is_collective(kernel: str) -> bool:
    """Whether a kernel is of a library of collectives."""
    return bool(_NCCL.match(kernel)) or of_collective(kernel)


def collective_kind(name: str) -> str | None:
    """Kind (`collectives.kind`) of `nccl:all_reduce`, `_allgather_base`, `allreduce` or a kernel's name; None for
    what names none."""
    for pattern, kind in _NAMED:
        if pattern.search(name):
            return kind
    return None


def category(kernel: str, call: str, copies: bool) -> str:
    """Category (`OP_CATEGORIES`) of a kernel, `call` being what launched it ("" where that is not known).

    `copies`: whether the trace itself says that it is a copy or a fill. Attention and other fused kernels of
    libraries are custom calls, as compilers call them.
    """
    if copies or is_gpu_copy(kernel):
        return "copy"
    if _GENERATED.match(kernel):
        return "fusion"
    if _CONVOLUTION_CALLS.match(call):
        return "convolution"
    if _ATTENTION.search(kernel):  # before convolutions: cuDNN calls its forward pass `sdpa_sm90_flash_fprop`
        return "custom-call"
    if _CONVOLUTION.search(kernel):
        return "convolution"
    if _MATMUL.search(kernel) or _MATMUL_CALLS.match(call):
        return "matmul"
    if _TRITON.search(kernel):
        return "fusion"
    if _MOVEMENT.search(kernel):
        return "data-movement"
    return "elementwise" if _ELEMENTWISE.search(kernel) else "other"


def of_matmul(call: str) -> bool:
    """Whether an operator of PyTorch is a matrix product."""
    return bool(_MATMUL_CALLS.match(call))


def multiplies(kernel: str) -> bool:
    """Whether a kernel's own name says that it multiplies matrices, as convolutions and attention do."""
    return not _GENERATED.match(kernel) and any(w.search(kernel) for w in (_MATMUL, _CONVOLUTION, _ATTENTION))
