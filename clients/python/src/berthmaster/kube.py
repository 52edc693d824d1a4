"""How to reach the Kubernetes API, with httpx alone. Only updates of weights need it."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from .config import SERVICE_ACCOUNT
from .errors import BerthmasterError, one_line


class KubeError(BerthmasterError):
    """The Kubernetes API cannot be reached, or refuses; ``status`` is 0 if it was not reached."""

    def __init__(self, message: str, status: int = 0, reason: str = "", owned: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.owned = owned
        """The fields that an apply would have taken from other field managers, each with its owner."""


@dataclass(frozen=True)
class KubeConfig:
    """One API server, and who calls it. Plain data: it can be pickled."""

    server: str
    token: str = field(default="", repr=False)
    token_file: str = ""
    """Read again for each call."""
    ca: str = field(default="", repr=False)
    """The authorities that the server is trusted by, as PEM; empty: the system's."""
    client_cert: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    """Certificate and key of the caller, as PEM; empty: none."""
    namespace: str = ""
    """The one that the context or the service account is about; empty: not said."""

    @classmethod
    def find(cls) -> KubeConfig:
        """The service account inside of a pod, else the kubeconfig."""
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return cls.in_cluster()
        return cls.from_file()

    @classmethod
    def in_cluster(cls, account: str = SERVICE_ACCOUNT) -> KubeConfig:
        """The API server and service account of the pod in which this runs."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        ca = Path(account) / "ca.crt"
        if not host or not ca.exists():
            raise KubeError("this is not a pod with a service account")
        host = f"[{host}]" if ":" in host else host
        named = Path(account) / "namespace"
        return cls(
            f"https://{host}:{port}", token_file=str(Path(account) / "token"), ca=ca.read_text(),
            namespace=named.read_text().strip() if named.exists() else "",
        )

    @classmethod
    def from_file(cls, path: str = "", context: str = "") -> KubeConfig:
        """What a kubeconfig file says: the named one, else that of KUBECONFIG, else ~/.kube/config; in
        the named context, else the current one. A file in YAML needs the package PyYAML."""
        file = Path(path or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or Path.home() / ".kube" / "config")
        try:
            whole = _parse(file.read_text())
        except OSError as err:
            raise KubeError(f"the kubeconfig cannot be read: {err}") from err
        chosen = _named(whole, "contexts", context or whole.get("current-context", ""))["context"]
        cluster = _named(whole, "clusters", chosen.get("cluster", ""))["cluster"]
        user = _named(whole, "users", chosen.get("user", ""))["user"]
        if "exec" in user or "auth-provider" in user:
            raise KubeError("the kubeconfig's user needs a program to log in, which this client does not run: give a token")
        return cls(
            server=cluster["server"].rstrip("/"),
            token=user.get("token", ""),
            token_file=user.get("tokenFile", ""),
            ca=_pem(cluster, "certificate-authority", file.parent),
            client_cert=_pem(user, "client-certificate", file.parent),
            client_key=_pem(user, "client-key", file.parent),
            namespace=chosen.get("namespace", ""),
        )

    def headers(self) -> dict[str, str]:
        token = Path(self.token_file).read_text().strip() if self.token_file and not self.token else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def trust(self) -> ssl.SSLContext | bool:
        if not self.server.startswith("https"):
            return False
        context = ssl.create_default_context(cadata=self.ca or None)
        if self.client_cert:
            # The ssl module reads these from files only.
            with tempfile.TemporaryDirectory() as folder:
                pair = Path(folder) / "pair.pem"
                pair.touch(mode=0o600)
                pair.write_text(self.client_cert + "\n" + self.client_key)
                context.load_cert_chain(pair)
        return context


class KubeAPI:
    """Reads and applies objects. Use it as a context manager."""

    def __init__(self, config: KubeConfig) -> None:
        self._config = config
        self._client = httpx.AsyncClient(
            base_url=config.server, verify=config.trust(), timeout=httpx.Timeout(30.0), follow_redirects=False
        )

    async def __aenter__(self) -> KubeAPI:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str) -> dict[str, Any]:
        return await self._call("GET", path)

    async def apply(
        self, path: str, body: Mapping[str, Any], manager: str, *, force: bool = False, dry_run: str = ""
    ) -> dict[str, Any]:
        """Applies an object on the server under a field manager. A field that another one owns with
        another value is refused, unless ``force`` takes it over. A field that the resource does not have
        is refused, not dropped."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = dry_run
        # JSON is YAML, which is what the API takes here.
        return await self._call("PATCH", path, params=query, content=json.dumps(body),
                                headers={"Content-Type": "application/apply-patch+yaml"})

    async def _call(self, method: str, path: str, headers: Mapping[str, str] | None = None, **what: Any) -> dict[str, Any]:
        try:
            response = await self._client.request(
                method, path, headers={**self._config.headers(), "Accept": "application/json", **(headers or {})}, **what
            )
        except (httpx.HTTPError, OSError) as err:
            raise KubeError(f"{method} {path}: {type(err).__name__}: {err}") from err
        try:
            members = response.json()
        except ValueError:
            members = {}
        if not response.is_success or not isinstance(members, dict):
            status = members if isinstance(members, dict) else {}
            words = one_line(str(status.get("message") or response.text))
            raise KubeError(
                f"{method} {path}: {response.status_code}: {words}", response.status_code, str(status.get("reason", "")), _owned(status)
            )
        return members


def _owned(status: Mapping[str, Any]) -> tuple[str, ...]:
    """The conflicts of an apply, as the API server tells them."""
    causes = (status.get("details") or {}).get("causes") or []
    return tuple(
        one_line(f"{cause.get('field')}: {cause.get('message')}") for cause in causes if cause.get("reason") == "FieldManagerConflict"
    )


def _parse(text: str) -> dict[str, Any]:
    try:
        whole = json.loads(text)
    except ValueError:
        try:
            import yaml
        except ImportError as err:
            raise KubeError("the kubeconfig is YAML: install berthmaster[kubeconfig]") from err
        whole = yaml.safe_load(text)
    if not isinstance(whole, dict):
        raise KubeError("the kubeconfig is not an object")
    return whole


def _named(whole: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    for entry in whole.get(kind) or []:
        if entry.get("name") == name:
            return dict(entry)
    raise KubeError(f"the kubeconfig has no {name!r} in its {kind}")


def _pem(entry: dict[str, Any], name: str, folder: Path) -> str:
    """The PEM of an entry that is inline, or in a file whose name counts from the kubeconfig's folder."""
    if data := entry.get(name + "-data"):
        return base64.b64decode(data).decode()
    return (folder / entry[name]).read_text() if entry.get(name) else ""
