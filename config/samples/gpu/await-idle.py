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


def ask(path):
    request = urllib.request.Request(SERVER + path, headers={"Authorization": "Bearer " + KEY} if KEY else {})
    with urllib.request.urlopen(request, timeout=5) as reply:
        return json.load(reply)


def requests():
    """How many requests run, wait or are put off, on all data-parallel ranks."""
    try:
        ranks = ask("/v1/loads?include=all")["loads"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return sum(rank["num_reqs"] for rank in ask("/get_load"))  # an older SGLang
    return sum(
        rank["num_running_reqs"] + rank["num_waiting_reqs"]
        + sum(rank.get("queues", {}).get(queue) or 0 for queue in ("paused", "retracted"))
        for rank in ranks
    )


def busy():
    """Whether anything may run; what cannot be read counts as busy."""
    try:
        return requests() > 0
    except urllib.error.URLError as error:
        # Nobody listens: the server has ended, and nothing is left to wait for.
        return not isinstance(error.reason, ConnectionRefusedError)
    except (OSError, ValueError, KeyError):
        return True


quiet_since = time.monotonic()
while time.monotonic() - quiet_since < QUIET:
    if busy():
        quiet_since = time.monotonic()
    time.sleep(0.5)
