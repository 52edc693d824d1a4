"""Waits until this pod's SGLang server has run nothing for QUIET_SECONDS: the preStop hook.

A pod that is being deleted gets no new lease, but leases granted before may still be used for
leases.startSeconds, which QUIET_SECONDS must not fall below. Kubernetes ends this hook, and the
server, after terminationGracePeriodSeconds.
"""

import json
import os
import time
import urllib.error
import urllib.request

SERVER = "http://127.0.0.1:" + os.environ.get("ENGINE_PORT", "30000")
QUIET = float(os.environ.get("QUIET_SECONDS", "30"))
KEY = os.environ.get("SGLANG_API_KEY", "")
# A proxy that the container is told to use has no business here.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path):
    request = urllib.request.Request(SERVER + path, headers={"Authorization": "Bearer " + KEY} if KEY else {})
    with DIRECT.open(request, timeout=5) as reply:
        return json.load(reply)


def held(rank):
    """How many requests one data-parallel rank runs, or holds in any of its queues."""
    queues = rank.get("queues") or {}
    waiting = max(rank["num_waiting_reqs"], queues.get("waiting") or 0)
    others = sum(queues.get(queue) or 0 for queue in ("grammar", "prealloc_ready", "paused", "retracted"))
    return rank["num_running_reqs"] + waiting + others


def requests():
    """The requests of each rank."""
    try:
        return [held(rank) for rank in ask("/v1/loads?include=all")["loads"]]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return [rank["num_reqs"] for rank in ask("/get_load")]  # an older SGLang


def busy():
    """Whether anything may run; what cannot be read, or says nothing of any rank, counts as busy."""
    try:
        ranks = requests()
    except urllib.error.URLError as error:
        # Nobody listens: the server has ended, and nothing is left to wait for.
        return not isinstance(error.reason, ConnectionRefusedError)
    except Exception as error:  # whatever it is, this hook must not end because of it
        print("await-idle:", repr(error))
        return True
    return not ranks or any(ranks)


quiet_since = time.monotonic()
while True:
    if busy():
        quiet_since = time.monotonic()
    elif time.monotonic() - quiet_since >= QUIET:
        break
    time.sleep(0.5)
