"""The traffic of a run, drawn from a seed: who asks what, and when."""

from dataclasses import dataclass

import numpy as np

from reference.serve.plan import Plan, Tenant
from reference.serve.training import corpus


@dataclass(frozen=True)
class Ask:
    """A request to be sent `at_s` after the start; its client leaves after `leave_after` pieces of output, if ever."""

    id: str
    phase: str
    tenant: str
    at_s: float
    prompt: bytes
    max_tokens: int
    leave_after: int | None = None


def traffic(plan: Plan) -> list[Ask]:
    """All requests, in order of arrival."""
    rng, text = np.random.default_rng(plan.traffic_seed), corpus()
    shared = {t.name: _excerpt(rng, text, t.shared_tokens) for t in plan.tenants}
    asks: list[Ask] = []
    begin_s = 0.0
    for phase in plan.phases:
        times, at_s, shape = [], begin_s, phase.cv**-2
        while (at_s := at_s + rng.gamma(shape, 1 / (shape * phase.rate_per_s))) < begin_s + phase.seconds:
            times.append(at_s)
        count = len(times)
        special = rng.choice(count, size=min(count, phase.too_long + phase.aborted), replace=False)
        too_long, leaving = set(special[: phase.too_long]), set(special[phase.too_long :])
        for i, at_s in enumerate(times):
            tenant = plan.tenants[rng.choice(len(plan.tenants), p=[t.share for t in plan.tenants])]
            own, output = _lengths(rng, plan, tenant)
            if i in too_long:
                own = plan.engine.context
            prompt = shared[tenant.name] + _excerpt(rng, text, own)
            asks.append(
                Ask(
                    f"r{len(asks):04d}",
                    phase.name,
                    tenant.name,
                    at_s,
                    prompt,
                    output,
                    leave_after=int(rng.integers(3, 12)) if i in leaving else None,
                )
            )
        begin_s += phase.seconds
    return asks


def _lengths(rng: np.random.Generator, plan: Plan, tenant: Tenant) -> tuple[int, int]:
    """Own prompt tokens and tokens to generate, within the context."""
    room = plan.engine.context - tenant.shared_tokens
    own = int(np.clip(rng.lognormal(np.log(tenant.own_tokens), 0.5), 8, 0.7 * room))
    return own, int(np.clip(rng.lognormal(np.log(tenant.output_tokens), 0.6), 4, room - own))


def _excerpt(rng: np.random.Generator, text: bytes, length: int) -> bytes:
    start = int(rng.integers(0, len(text) - length))
    return text[start : start + length]
