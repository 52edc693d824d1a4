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

URL = "http://127.0.0.1:" + os.environ.get("ENGINE_PORT", "30000") + "/v1/loads?include=all"
QUIET = float(os.environ.get("QUIET_SECONDS", "30"))
KEY = os.environ.get("SGLANG_API_KEY", "")


def busy():
    """Whether anything runs or waits, on any data-parallel rank; what cannot be read counts as busy."""
    request = urllib.request.Request(URL, headers={"Authorization": "Bearer " + KEY} if KEY else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            ranks = json.load(reply)["loads"]
    except urllib.error.URLError as error:
        # Nobody listens: the server has ended, and nothing is left to wait for.
        return not isinstance(error.reason, ConnectionRefusedError)
    except (OSError, ValueError, KeyError):
        return True
    return any(
        rank.get("num_running_reqs", 0) + rank.get("num_waiting_reqs", 0)
        + sum(rank.get("queues", {}).get(queue, 0) or 0 for queue in ("paused", "retracted"))
        for rank in ranks
    )


quiet_since = time.monotonic()
while time.monotonic() - quiet_since < QUIET:
    if busy():
        quiet_since = time.monotonic()
    time.sleep(0.5)
