"""Sessions of several turns with the Python client, from inside of a pod. What each was told is printed
as the judge reads it."""

import asyncio
import datetime
import json
import sys

import berthmaster as bm

SESSIONS, TURNS = 12, 5


def tell(session, turn, rid, event):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    print(json.dumps({"time": now, "session": session, "turn": turn, "rid": rid, "event": event}), flush=True)


async def play(pool, name):
    async with pool.session(name, sender="train") as session:
        for turn in range(TURNS):
            result = await session.generate(
                list(range(200)), {"max_new_tokens": 64, "ignore_eos": True}, wait=60,
                headers={"X-Turn": str(turn)}, session_id=name,
            )
            tell(name, str(turn), result.lease.rid, "succeeded")


async def main():
    config = bm.PoolConfig.in_cluster(
        "https://berthmaster-leases.berthmaster-system.svc:8085", "policy", ca_file="/etc/berthmaster/ca.crt",
    )
    async with bm.Pool(config) as pool:
        await asyncio.gather(*(play(pool, f"python-{i}") for i in range(SESSIONS)))


sys.exit(asyncio.run(main()))
