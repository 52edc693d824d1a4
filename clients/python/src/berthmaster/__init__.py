"""Client of Berthmaster's lease router: at most one execution of each request, and counts that are true.

    from berthmaster import Pool, PoolConfig

    pool = Pool(PoolConfig.of("http://router:8085", "rl", "policy-32b"))
    async with pool.session("t-17", group="g-3", sender="train") as s:
        r = await s.generate(input_ids, {"max_new_tokens": 512}, wait=600)
        r.output_ids, r.logprobs, r.backend, r.versions, r.mixed
"""

from .blocking import SyncPool, SyncSession
from .config import PoolConfig
from .errors import (
    Aborted,
    Ambiguous,
    BerthmasterError,
    Cancelled,
    ConfigError,
    Contended,
    ExecutionLost,
    Fenced,
    Forbidden,
    Held,
    Invalid,
    LeaseEnded,
    LeaseUnknown,
    NoBackend,
    NoLeader,
    NotALease,
    NotLeader,
    NotSent,
    OutcomeError,
    PoolFailed,
    PoolNotFound,
    Problem,
    Rejected,
    RequestConflict,
    SenderUnknown,
    StaleEpoch,
    StaleGeneration,
    TokenInvalid,
    Unanswered,
    Unauthenticated,
    Untrusted,
    outcome_of,
)
from .lease import Lease
from .pool import Pool
from .result import Result, Sample, VersionSpan
from .session import Session
from .stream import Stream
from .wire import Backend, Ending, Fate, LeaseRequest, Outcome, PoolState, Report

__all__ = [
    "Aborted", "Ambiguous", "Backend", "BerthmasterError", "Cancelled", "ConfigError", "Contended", "Ending",
    "ExecutionLost", "Fate", "Fenced", "Forbidden", "Held", "Invalid", "Lease", "LeaseEnded", "LeaseRequest",
    "LeaseUnknown", "NoBackend", "NoLeader", "NotALease", "NotLeader", "NotSent", "Outcome", "OutcomeError", "Pool",
    "PoolConfig", "PoolFailed", "PoolNotFound", "PoolState", "Problem", "Rejected", "Report", "RequestConflict",
    "Result", "Sample", "SenderUnknown", "Session", "StaleEpoch", "StaleGeneration", "Stream", "SyncPool",
    "SyncSession", "TokenInvalid", "Unanswered", "Unauthenticated", "Untrusted", "VersionSpan", "outcome_of",
]
