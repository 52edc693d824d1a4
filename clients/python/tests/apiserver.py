"""A Kubernetes API server, as far as one pool's object needs it: server-side apply by field managers,
strict validation, dry runs and resource versions."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PATH = "/apis/inference.berthmaster.io/v1alpha1/namespaces/rl/inferencepools/policy"


class APIServer:
    """One object. ``controller`` is called with it after each write and may change its status."""

    def __init__(self, spec_fields: set[str]) -> None:
        self.spec_fields = spec_fields
        self.lock = threading.Lock()
        self.writes: list[dict[str, Any]] = []
        self.reads = 0
        self.controller: Callable[[dict[str, Any]], None] = obey
        self.before_write: Callable[[], None] = lambda: None
        self.token = "kube-token"
        self.owner = ""
        """Who owns the access of train besides; empty: nobody."""
        self.object: dict[str, Any] = {
            "metadata": {"name": "policy", "generation": 1, "resourceVersion": "1", "annotations": {}, "managedFields": []},
            "spec": {"epoch": 1, "senders": [{"name": "train"}, {"name": "eval"}]},
            "status": {},
        }
        self.controller(self.object)
        self._owned: dict[str, dict[str, Any]] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever)

    def __enter__(self) -> APIServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def sender(self, name: str) -> dict[str, Any]:
        with self.lock:
            return next(copy.deepcopy(s) for s in self.object["spec"]["senders"] if s["name"] == name)

    def annotations(self) -> dict[str, str]:
        with self.lock:
            return dict(self.object["metadata"]["annotations"])

    def apply(self, body: dict[str, Any], query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if unknown := set(body["spec"]) - self.spec_fields:
            if query.get("fieldValidation") == "Strict":
                return refusal(400, "BadRequest", f"strict decoding error: unknown field spec.{unknown.pop()}")
        with self.lock:
            spec, weights = self.object["spec"], body["spec"].get("weights") or {}
            changed = weights and weights["version"] != (spec.get("weights") or {}).get("version")
            if changed and weights.get("epoch", 1) != spec["epoch"]:
                return refusal(422, "Invalid", "spec.weights.epoch must be spec.epoch where version is changed")
        if self.owner and query["force"] != "true":
            field = '.spec.senders[name="train"].access'
            status, told = refusal(409, "Conflict", "Apply failed with 1 conflict")
            cause = {"reason": "FieldManagerConflict", "message": f'conflict with "{self.owner}"', "field": field}
            return status, {**told, "details": {"causes": [cause]}}
        if "dryRun" in query:
            return 200, self.object
        self.before_write()
        with self.lock:
            meta = self.object["metadata"]
            if body["metadata"].get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
                return refusal(409, "Conflict", "the object has been modified")
            self.writes.append(body)
            self._merge(body, query["fieldManager"])
            meta["generation"] += 1
            meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
            written = copy.deepcopy(self.object)
            self.controller(self.object)
            return 200, written

    def _merge(self, body: dict[str, Any], manager: str) -> None:
        """Sets what is applied, and removes what the manager applied before and does not any more."""
        before, meta, spec = self._owned.get(manager, {}), self.object["metadata"], self.object["spec"]
        for note in before.get("metadata", {}).get("annotations", {}):
            meta["annotations"].pop(note, None)
        meta["annotations"].update(body["metadata"].get("annotations", {}))
        names = {s["name"] for s in body["spec"].get("senders", [])}
        gone = {s["name"] for s in before.get("spec", {}).get("senders", [])} - names
        for sender in spec["senders"]:
            if sender["name"] in gone:
                sender.pop("access", None)
            for applied in body["spec"].get("senders", []):
                if applied["name"] == sender["name"]:
                    sender.update(applied)
        if "weights" in before.get("spec", {}) and "weights" not in body["spec"]:
            spec.pop("weights")
        if "weights" in body["spec"]:
            spec["weights"] = dict(body["spec"]["weights"])
        self._owned[manager] = body
        fields: dict[str, Any] = {"k:" + json.dumps({"name": name}): {"f:access": {}} for name in sorted(names)}
        meta["managedFields"] = [
            {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:senders": fields}}},
        ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def do_GET(self) -> None:
                with server.lock:
                    server.reads += 1
                    self.answer(200, copy.deepcopy(server.object))

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                if self.headers["Content-Type"] != "application/apply-patch+yaml":
                    self.answer(*refusal(415, "UnsupportedMediaType", "not an apply"))
                    return
                self.answer(*server.apply(body, query))

            def answer(self, status: int, members: dict[str, Any]) -> None:
                if self.headers["Authorization"] != f"Bearer {server.token}":
                    status, members = refusal(401, "Unauthorized", "who are you?")
                elif not self.path.startswith(PATH):
                    status, members = refusal(404, "NotFound", "there is no such pool")
                raw = json.dumps(members).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        return Handler


def refusal(status: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}


def obey(thing: dict[str, Any]) -> None:
    """A controller that does at once what the spec says."""
    thing["status"] = {
        "observedGeneration": thing["metadata"]["generation"],
        "senders": [{"name": s["name"], "access": s.get("access") or "Open"} for s in thing["spec"]["senders"]],
        "weights": {"published": thing["spec"].get("weights", {}).get("version", "")},
    }
